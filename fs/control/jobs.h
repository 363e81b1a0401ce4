/* A request of the kernel that a worker goes on with. */
#ifndef FS_CONTROL_JOBS_H
#define FS_CONTROL_JOBS_H

#include "fs/control/workers.h"
#include "fs/fuse/session.h"

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct control;
struct control_handle;
struct workers;

struct request_job {
    struct request_work work;
    bool of_anybody; /* the same class for all users; else what other users ask than the owner is WORK_OTHERS */
    fuse_req_t req;
    struct session_request request;
    void (*run)(struct request_job *job); /* replies */
    void (*cancel)(
        struct request_job *job); /* it is not run; the reply is not its business. NULL: nothing is to be put back */
    int operation;                /* which of several that `run` does */
    uint64_t ino;
    struct control_handle *handle; /* a reference, which run or cancel gives back */
    size_t size;
    uint64_t offset;
    unsigned turns; /* how often it has run without an end */
    bool again;     /* set by `run`: it has not replied, and runs again after others */
    char name[];    /* a copy */
};

/* The workers of a control; `tick` and `rest` as work_rules have them. */
int jobs_create(struct control *control, void (*tick)(void *control), void (*rest)(void *control),
                struct workers **workers);
/* The first to ask for a list has it made; that is of use to all, and a look-up that waits for a turn would hold up
 * others in its directory. */
#define LIST_JOB .work.class = WORK_QUICK, .of_anybody = true

/* A worker runs it, or the request is answered with an error. What is not a field of the caller's is filled in;
 * a job that goes on with another one copies that. */
void job_defer(fuse_req_t req, const struct request_job *job, const char *name);
/* Does nobody wait for the job any more? As asker->gave_up. */
bool job_gave_up(void *job);
/* Nor for a request that is not with the workers. */
bool job_request_gave_up(fuse_req_t req);

#endif
