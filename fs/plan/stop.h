/* Interrupts long work: planning regularly asks whether the plan is still wanted. */
#ifndef FS_PLAN_STOP_H
#define FS_PLAN_STOP_H

#include <stdbool.h>
#include <stddef.h>

/* NULL: work is never interrupted. An interrupted function returns -EINTR. */
struct plan_stop {
    bool (*asked)(void *user); /* NULL: never */
    void *user;
};
enum { PLAN_SLICE = 1 << 16 }; /* samples between two checks */

static inline bool plan_stopped(const struct plan_stop *stop)
{
    return stop && stop->asked && stop->asked(stop->user);
}

#endif
