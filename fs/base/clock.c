#include "fs/base/clock.h"

#include <stdbool.h>
#include <stdlib.h>
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

uint64_t clock_bound(const char *variable, unsigned seconds)
{
    const char *text = secure_getenv(variable);
    char *end;
    unsigned long given = text ? strtoul(text, &end, 10) : 0;
    bool valid = text && end != text && !*end && given <= UINT32_MAX;
    return (valid ? given : seconds) * SECOND;
}

void clock_sleep(uint64_t nanoseconds)
{
    nanosleep(&(struct timespec){(time_t)(nanoseconds / SECOND), (long)(nanoseconds % SECOND)}, NULL);
}
