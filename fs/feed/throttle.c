/* Evaluates the server's counters and the scheduler's statistics. */
#include "fs/feed/throttle.h"

#include "fs/base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum {
    RAM,
    SOURCE = 3,         /* as in fs/store/store.h */
    IN_HAND_MOST = 256, /* READs in progress: a few milliseconds of work for a core */
    LOOKS_AT = 64,      /* READs that are examined for where they came from */
};
static const uint64_t look_again = MILLISECOND / 2, hold_least = 2 * MILLISECOND, hold_most = 64 * MILLISECOND;

void throttle_init(struct throttle *t, struct feed_served *served, int source_threads)
{
    *t = (struct throttle){
        .served = served, .source_most = 2 * (uint32_t)source_threads, .only_ram = true, .hold = hold_least};
    t->schedstat = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
}

void throttle_fini(struct throttle *t)
{
    if (t->schedstat >= 0)
        close(t->schedstat);
}

static void look_at_places(struct throttle *t)
{
    uint64_t reads = 0, ram = atomic_load_explicit(&t->served->reads[RAM], memory_order_relaxed);
    for (int place = 0; place < FEED_PLACES; place++)
        reads += atomic_load_explicit(&t->served->reads[place], memory_order_relaxed);
    if (reads - t->reads < LOOKS_AT)
        return;
    t->only_ram = (ram - t->ram) * 8 >= (reads - t->reads) * 7;
    t->reads = reads;
    t->ram = ram;
}

/* Since the last look, did this process wait for a core for more than three quarters of its run time? If it shares two
 * cores with the server and one reader, it waits for half of it; more means more readers. */
static bool is_crowded(struct throttle *t)
{
    char text[96];
    uint64_t ran, waited;
    ssize_t n = t->schedstat < 0 ? -1 : pread(t->schedstat, text, sizeof text - 1, 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    if (sscanf(text, "%" SCNu64 " %" SCNu64, &ran, &waited) != 2)
        return false;
    bool crowded = (waited - t->waited) * 4 > (ran - t->ran) * 3;
    t->ran = ran;
    t->waited = waited;
    return crowded;
}

uint64_t throttle_wait(struct throttle *t, uint64_t now)
{
    if (now < t->until)
        return t->until - now;
    if (atomic_load_explicit(&t->served->waits.all, memory_order_relaxed) >= IN_HAND_MOST ||
        atomic_load_explicit(&t->served->waits.waiting[SOURCE], memory_order_relaxed) >= t->source_most)
        return look_again;
    look_at_places(t);
    bool crowded = is_crowded(t);
    if (!t->only_ram || !crowded) {
        t->hold = hold_least;
        return 0;
    }
    t->until = now + t->hold;
    t->hold = t->hold * 2 < hold_most ? t->hold * 2 : hold_most;
    return t->until - now;
}
