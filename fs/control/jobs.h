/* A request of the kernel that a worker continues. */
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
    /* the same class for all users; otherwise requests of users other than the owner are WORK_OTHERS */
    bool of_anybody;
    fuse_req_t req;
    struct session_request request;
    void (*run)(struct request_job *job); /* replies */
    void (*cancel)(
        /* called instead of `run` if the job is dropped; must not reply. NULL: nothing to undo */
        struct request_job *job);
    int operation; /* distinguishes several operations of `run` */
    uint64_t ino;
    struct control_handle *handle; /* a reference; run or cancel releases it */
    size_t size;
    uint64_t offset;
    unsigned turns; /* how often it has run without finishing */
    bool again;     /* set by `run` if it has not replied: it runs again after other jobs */
    char name[];    /* a copy */
};

/* Creates the workers of a control. `tick` and `rest`: see work_rules. */
int jobs_create(struct control *control, void (*tick)(void *control), void (*rest)(void *control),
                struct workers **workers);
/* The first request for a list creates it, for all users. A lookup that waited for a turn would block others in its
 * directory. */
#define LIST_JOB .work.class = WORK_QUICK, .of_anybody = true

/* Let a worker run the job, or reply with an error. Fills in all fields that are not the caller's. A job that continues
 * another one copies its fields. */
void job_defer(fuse_req_t req, const struct request_job *job, const char *name);
/* Has everybody stopped waiting for the job? See asker->gave_up. */
bool job_gave_up(void *job);
/* The same for a request without a job. */
bool job_request_gave_up(fuse_req_t req);

#endif
