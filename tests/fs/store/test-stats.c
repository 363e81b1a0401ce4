/* fs/store/stats: which READ `dealfs status` and `dealfs top` call the slowest, and for how long. The clock stands, and
 * the tests move it. */
#include "tests/fs/base/moved-clock.h"
#include "tests/lib/tap.h"

#include "fs/store/stats.h"

#include <pthread.h>

static struct stats *stats;

static void answer(enum place place, uint32_t file, uint64_t ms)
{
    const struct span span = {.file = file, .length = 4096};
    stats_read(stats, place, &span, clock_now() - ms * MILLISECOND);
}

static struct slowest_read slowest(void)
{
    struct store_stats sum;
    stats_sum(stats, &sum);
    return sum.slowest;
}

static void is_slowest(uint32_t file, uint64_t ms, enum place place, const char *what)
{
    struct slowest_read s = slowest();
    ok(s.answered != 0 && s.file == file && s.us == 1000 * ms && s.place == place, "%s: file %u, %u ms, from %s", what,
       file, (unsigned)ms, place_names[place]);
}

static void test_slowest(void)
{
    is_uint(slowest().answered, 0, "without READs none is the slowest");
    uint64_t first = clock_now();
    answer(PLACE_SOURCE, 7, 900);
    answer(PLACE_SOURCE, 8, 899);
    answer(PLACE_RAM, 9, 1);
    is_slowest(7, 900, PLACE_SOURCE, "the slowest of one place, and of all");
    clock_add(4 * SECOND);
    answer(PLACE_PEER, 3, 901);
    is_slowest(3, 901, PLACE_PEER, "one that took longer replaces it");
    answer(PLACE_RAM, 4, 800);
    clock_add(SLOWEST_S * SECOND - 1);
    is_slowest(3, 901, PLACE_PEER, "it is the slowest for ten seconds");
    ok(slowest().answered == first + 4 * SECOND, "since its answer");
    clock_add(1);
    is_uint(slowest().answered, 0, "and not for longer");
    answer(PLACE_PEER, 5, 2);
    is_slowest(5, 2, PLACE_PEER, "then a faster one is");
    clock_add(SLOWEST_S * SECOND / 2);
    answer(PLACE_PEER, 6, 1);
    clock_add(SLOWEST_S * SECOND / 2);
    is_uint(slowest().answered, 0, "one that was faster meanwhile is forgotten");
}

static void *answer_by_another(void *argument)
{
    answer(PLACE_RAM, *(uint32_t *)argument, 50);
    return NULL;
}

static void test_threads(void)
{
    uint32_t file = 70;
    pthread_t thread;
    answer(PLACE_RAM, 71, 40);
    if (pthread_create(&thread, NULL, answer_by_another, &file))
        bail_out("a thread");
    pthread_join(thread, NULL);
    answer(PLACE_RAM, 72, 45);
    is_slowest(70, 50, PLACE_RAM, "of several threads");
}

static void test_times(void)
{
    struct store_stats before, after;
    stats_sum(stats, &before);
    answer(PLACE_SSD, 1, 3);
    answer(PLACE_SSD, 2, 4);
    answer(PLACE_SSD, 2, 5);
    stats_sum(stats, &after);
    is_uint(after.reads[PLACE_SSD] - before.reads[PLACE_SSD], 3, "READs are counted by place");
    is_uint(after.bytes[PLACE_SSD] - before.bytes[PLACE_SSD], 3 * 4096, "with their bytes");
    is_uint(after.latency_sum[PLACE_SSD] - before.latency_sum[PLACE_SSD], 12 * MILLISECOND, "their times are added up");
    is_uint(after.latency[PLACE_SSD][12], 2, "two took less than 4,096 us");
    is_uint(after.latency[PLACE_SSD][13], 1, "one less than 8,192 us");
}

int main(void)
{
    clock_stand();
    if (stats_create(NULL, &stats))
        bail_out("no memory");
    test_slowest();
    test_threads();
    test_times();
    stats_destroy(stats);
    return done_testing();
}
