/* A child that may hang in our place: a process that must return in any case lets it touch a mount. */
#ifndef CLI_BASE_GUARD_H
#define CLI_BASE_GUARD_H

#include "fs/base/str.h"

#include <stdbool.h>

/* `work` runs in a child and may append to its `out`; both its result and that text come back (the text is appended to
 * `out` also when the result is an error). The child's standard files are /dev/null. -ETIMEDOUT: it had not ended after
 * `seconds`; it is killed, and left behind where it cannot be. */
int guard_run(int (*work)(void *user, struct str *out), void *user, unsigned seconds, struct str *out);

/* The same without waiting: several at a time. */
struct guard {
    int pid, fd; /* fd: readable when there is something to take; -1: none runs */
    struct str reply;
};
int guard_start(int (*work)(void *user, struct str *out), void *user, struct guard *guard);
/* False: it has not ended yet. Else `result` is guard_run's, and the guard is over. */
bool guard_take(struct guard *guard, struct str *out, int *result);
/* Kills it; one that cannot be killed is left behind. */
void guard_end(struct guard *guard);

#endif
