/* The processes that an agent starts, and their output. */
#ifndef CLI_LAUNCH_AGENT_TASKS_H
#define CLI_LAUNCH_AGENT_TASKS_H

#include "cli/launch/launch-job.h"
#include "cli/launch/remains.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum task_output { OUTPUT_OF_COMMAND, ERRORS_OF_COMMAND };

struct tasks {
    bool direct;   /* the command gets our standard files */
    bool terminal; /* it also stays in our process group, to which the terminal sends signals */
    struct launch_job job;
    struct remains *remains;
    char *mountpoint;            /* absolute */
    pid_t mount, stage, command; /* 0: not running */
    bool mounted;
    int said;        /* output of `dealfs mount`; -1 */
    int output[2];   /* output of the command, by enum task_output; -1 */
    char line[4096]; /* the current line of `said` */
    size_t length;
    int signalled;      /* the last signal that was sent to the command */
    uint64_t signal_at; /* and when: scancel and `launch` both send it */
};

void tasks_init(struct tasks *t, bool direct);
void tasks_fini(struct tasks *t);

/* Checks the job and starts the mount. `text` must stay valid. Else -errno, `why`, and `status`: the exit status. */
int tasks_begin(struct tasks *t, const struct str *text, struct str *why, int *status);
int tasks_stage(struct tasks *t, struct str *why);
/* `place`: ADDRESS PORT of the first node. */
int tasks_command(struct tasks *t, const char *place, struct str *why);
/* ADDRESS PORT of this node; the port is free. */
void tasks_add_place(const struct tasks *t, struct str *out);
void tasks_signal(struct tasks *t, int signal); /* to the command, or to the staging process */

void tasks_read_mount(struct tasks *t, void (*take)(void *user, const char *line), void *user);
bool tasks_have_output(const struct tasks *t);
void tasks_read_output(struct tasks *t, enum task_output from,
                       void (*take)(void *user, enum task_output from, const char *bytes, size_t n), void *user);

#endif
