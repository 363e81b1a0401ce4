#include "fs/base/clock.h"

#include <time.h>

static uint64_t clock_read(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

uint64_t clock_now(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

uint64_t clock_realtime(void)
{
    return clock_read(CLOCK_REALTIME);
}

void clock_sleep(uint64_t nanoseconds)
{
    nanosleep(&(struct timespec){(time_t)(nanoseconds / SECOND), (long)(nanoseconds % SECOND)}, NULL);
}
