/* Source files that become older when the test says so: scans do not trust time stamps of the last two seconds.
 *
 * In the program that includes this header, CLOCK_REALTIME is ahead by the sum of all source_settle. So are the times
 * of a file, by those that came after them on the real clock: so the clock and the times of files agree. A time in the
 * future, which a test has set, is left as it is. */
#ifndef TESTS_FS_CATALOG_AGED_H
#define TESTS_FS_CATALOG_AGED_H

#include "fs/base/clock.h"
#include "tests/lib/tap.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { AGED_MOST = 16 };
#define AGED_STEP (2 * SECOND + 100 * MILLISECOND)

static struct {
    uint64_t at[AGED_MOST]; /* the real time of each source_settle */
    unsigned count;
    void (*before)(const struct statx *x, int flags,
                   struct statx_timestamp *ctime); /* changes the real time; or NULL */
} aged;

static inline uint64_t aged_nanoseconds(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_nsec;
}

static inline uint64_t aged_real(clockid_t clock)
{
    struct timespec t;
    syscall(SYS_clock_gettime, clock, &t);
    return aged_nanoseconds(&t);
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int error = (int)syscall(SYS_clock_gettime, clock, t);
    if (clock == CLOCK_REALTIME) {
        uint64_t shown = aged_nanoseconds(t) + aged.count * AGED_STEP;
        *t = (struct timespec){(time_t)(shown / SECOND), (long)(shown % SECOND)};
    }
    return error;
}

static inline struct statx_timestamp aged_time(struct statx_timestamp t)
{
    uint64_t time = aged_nanoseconds(&(struct timespec){(time_t)t.tv_sec, (long)t.tv_nsec}), shown = time;
    if (t.tv_sec < 0 || time > aged_real(CLOCK_REALTIME))
        return t;
    for (unsigned i = 0; i < aged.count; i++)
        shown += time >= aged.at[i] ? AGED_STEP : 0;
    return (struct statx_timestamp){.tv_sec = (int64_t)(shown / SECOND), .tv_nsec = (uint32_t)(shown % SECOND)};
}

int statx(int fd, const char *path, int flags, unsigned mask, struct statx *x)
{
    if (syscall(SYS_statx, fd, path, flags, mask, x))
        return -1;
    if (aged.before)
        aged.before(x, flags, &x->stx_ctime);
    x->stx_mtime = aged_time(x->stx_mtime);
    x->stx_ctime = aged_time(x->stx_ctime);
    return 0;
}

/* Time stamps of what was made before are trusted. Those of what is made from here on are later. */
static inline void source_settle(void)
{
    if (aged.count == AGED_MOST)
        bail_out("AGED_MOST is too small");
    uint64_t now = aged_real(CLOCK_REALTIME);
    aged.at[aged.count++] = now;
    while (aged_real(CLOCK_REALTIME_COARSE) <= now)
        nanosleep(&(struct timespec){.tv_nsec = MILLISECOND}, NULL);
}

#endif
