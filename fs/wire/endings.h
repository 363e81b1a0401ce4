/* How the servers of a mount ended: the keeper records it in the shared memory, and the next server reports it. */
#ifndef FS_WIRE_ENDINGS_H
#define FS_WIRE_ENDINGS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ending_how {
    ENDING_UNSEEN, /* its keeper had also ended */
    ENDING_SIGNAL, /* by signal `number` */
    ENDING_EXIT,   /* with exit status `number` */
    /* killed by the keeper: */
    ENDING_STOPPED, /* stopped by SIGSTOP or similar, and did not continue */
    ENDING_STUCK,   /* none of its readers returned */
    ENDING_HUNG,    /* it never began to serve */
};

enum { ENDINGS_KEPT = 128, ENDINGS_LATELY_S = 3600 };

struct endings {
    _Atomic uint64_t count; /* total number */
    struct {
        _Atomic uint64_t at; /* nanoseconds, real time */
        _Atomic uint32_t how, number;
    } last[ENDINGS_KEPT]; /* the Nth is at N modulo ENDINGS_KEPT */
};

struct ending {
    uint64_t at;
    enum ending_how how;
    int number;
};

void endings_add(struct endings *endings, enum ending_how how, int number);
/* The last one for `back` 0, the one before for 1, …; -ENOENT: there were fewer, or it was overwritten. */
int endings_get(const struct endings *endings, unsigned back, struct ending *ending);
unsigned endings_lately(const struct endings *endings,
                        uint64_t time); /* in the last `time` nanoseconds, among those kept */

/* From outside: somebody kills servers, or memory is short. Also if nobody saw how it ended: its keeper also did. */
bool ending_is_kill(const struct ending *ending);
/* "was killed by signal 9 (Killed)" */
void ending_describe(const struct ending *ending, char *text, size_t n);

#endif
