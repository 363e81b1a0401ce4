/* How long work is interrupted: who plans asks now and then whether anybody still wants the plan. */
#ifndef FS_PLAN_STOP_H
#define FS_PLAN_STOP_H

#include <stdbool.h>
#include <stddef.h>

/* NULL in place of the struct: nobody interrupts. A function that was interrupted returns -EINTR. */
struct plan_stop {
    bool (*asked)(void *user); /* NULL: the same */
    void *user;
};
enum { PLAN_SLICE = 1 << 16 }; /* samples between two questions */

static inline bool plan_stopped(const struct plan_stop *stop)
{
    return stop && stop->asked && stop->asked(stop->user);
}

#endif
