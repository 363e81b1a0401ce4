/* How the servers of a mount ended: the keeper notes it in the shared memory, the next server tells it. */
#ifndef FS_WIRE_ENDINGS_H
#define FS_WIRE_ENDINGS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum ending_how {
    ENDING_UNSEEN, /* its keeper was gone as well */
    ENDING_SIGNAL, /* `number` */
    ENDING_EXIT,   /* with status `number` */
    /* The keeper killed it: */
    ENDING_STOPPED, /* by SIGSTOP or the like, and it did not go on */
    ENDING_STUCK,   /* no reader of it returned */
    ENDING_HUNG,    /* before it served */
};

enum { ENDINGS_KEPT = 128, ENDINGS_LATELY_S = 3600 };

struct endings {
    _Atomic uint64_t count; /* of all */
    struct {
        _Atomic uint64_t at; /* nanoseconds, of the day's clock */
        _Atomic uint32_t how, number;
    } last[ENDINGS_KEPT]; /* the Nth is at N modulo ENDINGS_KEPT */
};

struct ending {
    uint64_t at;
    enum ending_how how;
    int number;
};

void endings_add(struct endings *endings, enum ending_how how, int number);
/* The `back`th from the last one, 0 is that; -ENOENT: there were fewer, or it is not kept. */
int endings_get(const struct endings *endings, unsigned back, struct ending *ending);
unsigned endings_lately(const struct endings *endings,
                        uint64_t time); /* in the last `time` nanoseconds, of those kept */

/* "was killed by signal 9 (Killed)" */
void ending_describe(const struct ending *ending, char *text, size_t n);

#endif
