/* How servers ended. One keeper at a time writes. A reader may at worst see an entry that is being written. */
#include "fs/wire/endings.h"

#include "fs/base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

void endings_add(struct endings *e, enum ending_how how, int number)
{
    unsigned i = (unsigned)(atomic_load(&e->count) % ENDINGS_KEPT);
    atomic_store(&e->last[i].at, clock_realtime());
    atomic_store(&e->last[i].how, how);
    atomic_store(&e->last[i].number, (uint32_t)number);
    atomic_fetch_add(&e->count, 1);
}

int endings_get(const struct endings *e, unsigned back, struct ending *ending)
{
    uint64_t count = atomic_load(&e->count);
    if (back >= count || back >= ENDINGS_KEPT)
        return -ENOENT;
    unsigned i = (unsigned)((count - 1 - back) % ENDINGS_KEPT);
    *ending = (struct ending){
        .at = atomic_load(&e->last[i].at),
        .how = atomic_load(&e->last[i].how),
        .number = (int)atomic_load(&e->last[i].number),
    };
    return 0;
}

unsigned endings_lately(const struct endings *e, uint64_t time)
{
    uint64_t now = clock_realtime();
    struct ending ending;
    unsigned n = 0;
    while (endings_get(e, n, &ending) == 0 && ending.at + time > now)
        n++;
    return n;
}

bool ending_is_kill(const struct ending *e)
{
    return e->how == ENDING_UNSEEN || e->how == ENDING_STOPPED ||
           (e->how == ENDING_SIGNAL && (e->number == SIGKILL || e->number == SIGTERM));
}

void ending_describe(const struct ending *e, char *text, size_t n)
{
    switch (e->how) {
    case ENDING_UNSEEN:
        snprintf(text, n, "died for an unknown reason");
        break;
    case ENDING_SIGNAL:
        snprintf(text, n, "was killed by signal %d (%s)", e->number, strsignal(e->number));
        break;
    case ENDING_EXIT:
        snprintf(text, n, "exited with status %d", e->number);
        break;
    case ENDING_STOPPED:
        snprintf(text, n, "was stopped (by SIGSTOP or the like) and did not continue, so it was replaced");
        break;
    case ENDING_STUCK:
        snprintf(text, n, "was stuck, so it was replaced");
        break;
    case ENDING_HUNG:
        snprintf(text, n, "hung before it served (a disk or the source does not answer), so it was replaced");
        break;
    }
}
