/* A child that may hang instead of this process: it accesses a mount for a process that must not hang. */
#ifndef CLI_BASE_GUARD_H
#define CLI_BASE_GUARD_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* `work` runs in a child and may append to its `out`. Returns its result, and appends that text to `out`, even if the
 * result is an error. The child's standard files are /dev/null. -ETIMEDOUT: it had not ended after `seconds`; it is
 * killed, and left alone if it cannot be. */
int guard_run(int (*work)(void *user, struct str *out), void *user, unsigned seconds, struct str *out);

/* The same without waiting: several may run concurrently. */
struct guard {
    int pid, fd; /* fd: readable when there is something to take; -1: none runs */
    struct str reply;
};
int guard_start(int (*work)(void *user, struct str *out), void *user, struct guard *guard);
/* False: it has not ended yet. Else `result` is that of guard_run, and the guard is done. */
bool guard_take(struct guard *guard, struct str *out, int *result);
/* Waits until then; -ETIMEDOUT: it has not ended, and is killed. */
int guard_await(struct guard *guard, uint64_t deadline, struct str *out);
/* Kills it; one that cannot be killed is left alone. */
void guard_end(struct guard *guard);

#endif
