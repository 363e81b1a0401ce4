/* Staging: fills, stops, goes on, ends at full tiers, passes what fails. */
#include "tests/fs/base/moved-clock.h"
#include "tests/fs/store/dataset.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

enum { SMALL = 200, SMALL_BYTES = 30000, PATIENCE_S = 3600 };

static struct dataset d;

static atomic_int hangs; /* looks of threads that hang at the source */

int nanosleep(const struct timespec *time, struct timespec *left)
{
    atomic_fetch_add(&hangs, gettid() != getpid());
    return clock_nanosleep(CLOCK_MONOTONIC, 0, time, left) ? -1 : 0;
}

static struct stage_progress stage(struct store *store)
{
    is_int(store_stage_start(store, 0, NULL), 0, "staging starts");
    wait_until(progress_of(store).state != STAGE_RUNNING);
    return progress_of(store);
}

static int read_first(struct store *store, uint32_t file, enum place *place)
{
    uint64_t size = dataset_size(&d, file);
    struct span span = {.file = file, .length = size < 65536 ? (uint32_t)size : 65536};
    return read_check(store, &d, &span, place);
}

static void test_fill(void)
{
    struct store *store = dataset_store(&d, 128 * MIB, 0, NULL, false);
    is_int(progress_of(store).state, STAGE_IDLE, "idle at first");
    struct stage_progress p = stage(store);
    uint64_t all = catalog_bytes(d.catalog);
    is_int(p.state, STAGE_DONE, "done");
    is_uint(p.kept, all, "all is kept");
    is_uint(p.bytes, all, "all was looked at");
    is_uint(p.bytes_total, all, "of all");
    is_uint(p.files, catalog_files(d.catalog), "every file");
    is_uint(p.failed, 0, "none failed");
    ok(p.elapsed > 0, "it took its time");
    is_uint(stats_of(store).source_bytes, all, "each byte was read once");
    is_uint(stats_of(store).reads[PLACE_SOURCE], 0, "staging counts as no reads");
    enum place place;
    int wrong = 0;
    for (uint32_t file = 0; file < catalog_files(d.catalog); file++)
        if (dataset_size(&d, file))
            wrong += read_first(store, file, &place) != 0 || place != PLACE_RAM;
    is_int(wrong, 0, "every file is right and in the RAM tier");
    p = stage(store);
    is_int(p.state, STAGE_DONE, "staged again");
    is_uint(p.kept, all, "all is kept still");
    is_uint(stats_of(store).source_bytes, all, "and nothing is read");
    store_close(store);

    store = dataset_store(&d, 128 * MIB, 0, NULL, true);
    is_uint(stage(store).kept, all, "staged again in a new store");
    is_uint(stats_of(store).source_bytes, 0, "nothing is read");
    store_close(store);
}

static void test_full(const char *what, uint64_t ram, uint64_t ssd)
{
    struct store *store = dataset_store(&d, ram, ssd, NULL, false);
    struct stage_progress p = stage(store);
    is_int(p.state, STAGE_DONE, "%s: done", what);
    is_uint(p.failed, 0, "%s: nothing failed", what);
    is_uint(p.files, catalog_files(d.catalog), "%s: every file was looked at", what);
    ok(p.kept < p.bytes_total, "%s: less is kept than there is: %llu of %llu", what, (unsigned long long)p.kept,
       (unsigned long long)p.bytes_total);
    ok(p.kept >= (ram + ssd) / 2, "%s: but more than half of the room is used", what);
    struct store_stats stats = stats_of(store);
    uint64_t used = 0;
    for (enum tier_name t = 0; t < TIERS; t++) {
        ok(stats.tier[t].held <= stats.tier[t].capacity, "%s: %s within its budget", what, tier_names[t]);
        used += stats.tier[t].held;
    }
    diag("%s: %llu of %llu bytes used", what, (unsigned long long)used, (unsigned long long)(ram + ssd));
    int wrong = 0;
    for (uint32_t file = 0; file < catalog_files(d.catalog); file++)
        if (dataset_size(&d, file))
            wrong += read_first(store, file, NULL) != 0;
    is_int(wrong, 0, "%s: every file is right", what);
    ok(stage(store).kept >= p.kept, "%s: staged again: no less is kept", what);
    store_close(store);
}

static void test_none(void)
{
    struct store *store = dataset_store(&d, 0, 0, NULL, false);
    struct stage_progress p = stage(store);
    is_int(p.state, STAGE_DONE, "no tiers: done");
    is_uint(p.kept, 0, "no tiers: nothing kept");
    is_uint(stats_of(store).source_bytes, 0, "no tiers: nothing read");
    store_close(store);
}

static void test_stop(void)
{
    faults_set("hang=middle");
    struct store *store = dataset_store(&d, 128 * MIB, 0, "file=FILE", false);
    is_int(store_stage_start(store, 0, NULL), 0, "staging from a source that hangs");
    is_int(store_stage_start(store, 0, NULL), 0, "started when it runs already");
    wait_until(progress_of(store).kept > 0);
    store_stage_stop(store);
    wait_until(progress_of(store).state != STAGE_RUNNING);
    struct stage_progress p = progress_of(store);
    is_int(p.state, STAGE_STOPPED, "stopped, though the source hangs");
    ok(p.kept > 0 && p.kept < p.bytes_total, "in the middle");
    faults_set("");
    p = stage(store);
    is_int(p.state, STAGE_DONE, "goes on");
    is_uint(p.kept, p.bytes_total, "to the end");
    is_uint(stats_of(store).source_bytes, p.bytes_total, "each byte was read once in both");
    store_close(store);
}

/* One file's load hangs: the rest is staged and stored, and a flush, as a move waits for, does not wait for it. */
static void test_hang(void)
{
    faults_set("hang=middle");
    struct store *store = dataset_store(&d, 128 * MIB, 0, "file=FILE", false);
    uint64_t middle = dataset_size(&d, dataset_file(&d, "middle"));
    clock_stand();
    is_int(store_stage_start(store, 0, NULL), 0, "staging starts");
    wait_until(progress_of(store).kept == catalog_bytes(d.catalog) - middle);
    is_int(progress_of(store).state, STAGE_RUNNING, "a load hangs: staging waits for it");
    atomic_store(&hangs, 0);
    wait_until(atomic_load(&hangs) > 0);
    for (int i = 0; progress_of(store).state == STAGE_RUNNING; i++) {
        clock_add(PATIENCE_S * SECOND / 4);
        wait_step(i, "staging ends");
    }
    clock_run();
    struct stage_progress p = progress_of(store);
    is_int(p.state, STAGE_DONE, "and ends without it");
    is_uint(p.failed, 1, "and says that one is left");
    is_int(p.error, -ETIMEDOUT, "and why");
    is_uint(p.kept, p.bytes_total - middle, "the rest is kept");
    is_int(store_flush(store), -EBUSY, "a flush says that not all is stored");
    uint32_t large = dataset_file(&d, "large");
    ok(store_is_stored(store, large, 0, 40 * MIB), "what does not share its segment is stored");
    faults_set("");
    p = stage(store);
    is_uint(p.kept, p.bytes_total, "the source answers: the rest comes");
    is_uint(p.failed, 0, "nothing fails");
    is_int(store_flush(store), 0, "and is stored");
    is_uint(stats_of(store).source_bytes, p.bytes_total, "each byte was read once");
    store_close(store);
}

static void test_close(void)
{
    faults_set("delay=20");
    struct store *store = dataset_store(&d, 128 * MIB, 0, "file=FILE", false);
    is_int(store_stage_start(store, 0, NULL), 0, "staging");
    wait_until(progress_of(store).kept > 0);
    store_close(store);
    pass("the store is closed while it runs");
}

static void test_failures(void)
{
    faults_set("errno=EIO,match=small/1*");
    struct store *store = dataset_store(&d, 128 * MIB, 0, "file=FILE", false);
    struct stage_progress p = stage(store);
    is_int(p.state, STAGE_DONE, "done in spite of failures");
    is_uint(p.failed, 111, "each file that failed is counted: 1, 10…19, 100…199");
    is_int(p.error, -EIO, "the first error is told");
    is_uint(p.kept, p.bytes_total - 111 * SMALL_BYTES, "the others are kept");
    faults_set("errno=EIO,match=large*");
    store_close(store);

    store = dataset_store(&d, 128 * MIB, 0, "file=FILE", false);
    p = stage(store);
    is_uint(p.failed, 1, "a large file that fails in all of its pieces counts once");
    faults_set("");
    p = stage(store);
    is_uint(p.failed, 0, "the next time it does not fail");
    is_uint(p.kept, p.bytes_total, "and is kept");
    store_close(store);
}

/* While every load of the stage hangs, a reader gets a thread. */
static void test_readers_first(void)
{
    faults_set("hang=small/*");
    struct store *store = dataset_store(&d, 128 * MIB, 0, "file=FILE", false);
    is_int(store_stage_start(store, 0, NULL), 0, "staging from a source that hangs");
    for (int i = 0; i < 10; i++) {
        struct span span = {.file = dataset_file(&d, "large"), .offset = (uint64_t)i * PIECE_BYTES, .length = 4096};
        is_int(read_check(store, &d, &span, NULL), 0, "a reader meanwhile");
    }
    is_int(progress_of(store).state, STAGE_RUNNING, "readers did not wait for the end of the staging");
    faults_set("");
    wait_until(progress_of(store).state == STAGE_DONE);
    is_uint(progress_of(store).kept, catalog_bytes(d.catalog), "all is kept");
    is_uint(stats_of(store).source_bytes, catalog_bytes(d.catalog), "each byte was read once");
    store_close(store);
}

/* The server before us still has the tier open. */
static void test_locked(void)
{
    struct store *before = dataset_store(&d, 128 * MIB, 0, NULL, false);
    enum place place;
    uint32_t middle = dataset_file(&d, "middle");
    is_int(read_first(before, middle, NULL), 0, "a store holds something");
    struct store *after = dataset_store(&d, 128 * MIB, 0, NULL, true);
    is_int(stats_of(after).tier[TIER_RAM].state, TIER_LOCKED, "the next one finds the tier locked");
    is_int(read_first(after, middle, &place), 0, "it answers nevertheless");
    is_int(place, PLACE_SOURCE, "from the source");
    is_int(store_stage_start(after, 0, NULL), 0, "staging");
    is_uint(progress_of(after).files, 0, "waits for the tier");
    store_close(before);
    wait_until(progress_of(after).state != STAGE_RUNNING);
    is_uint(progress_of(after).kept, catalog_bytes(d.catalog), "and then keeps all");
    is_int(read_first(after, middle, &place), 0, "which is read");
    is_int(place, PLACE_RAM, "from the tier");
    store_close(after);
}

/* --- a node of a world --- */

static struct {
    struct dataset d;
    uint32_t huge;
    atomic_bool all; /* everything is ours */
} world;

/* Every second file, and of the one with two stripes the second. */
static bool is_ours(void *user, uint32_t file, uint64_t offset)
{
    (void)user;
    return atomic_load(&world.all) || (file == world.huge ? offset >= EXTENT_BYTES : file % 2 == 0);
}

static int nobody(void *user, struct store_read *read)
{
    (void)user, (void)read;
    return -ENOTCONN;
}

static void test_share(void)
{
    dataset_begin(&world.d);
    for (int i = 0; i < 20; i++)
        dataset_add(&world.d, test_path("small-%02d", i) + strlen(test_directory()) + 1, SMALL_BYTES);
    dataset_add(&world.d, "empty-20", 0);
    dataset_add(&world.d, "huge", EXTENT_BYTES + 3 * MIB);
    dataset_scan(&world.d);
    world.huge = dataset_file(&world.d, "huge");
    struct store *store = dataset_store(&world.d, 128 * MIB, 0, NULL, false);
    store_set_peers(store, &(struct store_peers){.keeps = is_ours, .fetch = nobody});

    uint64_t bytes = 3 * MIB, files = 0;
    for (uint32_t file = 0; file < catalog_files(world.d.catalog); file++) {
        files += file != world.huge && file % 2 == 0;
        bytes += file != world.huge && file % 2 == 0 ? dataset_size(&world.d, file) : 0;
    }
    struct stage_progress p = stage(store);
    is_int(p.state, STAGE_DONE, "a share: done");
    is_uint(p.bytes_total, bytes, "a share: that many bytes");
    is_uint(p.files_total, files, "a share: of that many files");
    is_uint(p.files, files, "a share: all of them");
    is_uint(p.kept, bytes, "a share: all kept");
    is_uint(stats_of(store).source_bytes, bytes, "a share: and nothing else was read");
    uint64_t wrong = 0;
    for (uint32_t file = 0; file < catalog_files(world.d.catalog); file++)
        wrong += dataset_size(&world.d, file) && store_holds(store, file, 0) != is_ours(NULL, file, 0);
    is_uint(wrong, 0, "a share: what is another's is not held");
    ok(store_holds(store, world.huge, EXTENT_BYTES) && !store_holds(store, world.huge, EXTENT_BYTES - 1),
       "a share: of a large file its stripe");

    atomic_store(&world.all, true);
    p = stage(store);
    is_uint(p.bytes_total, catalog_bytes(world.d.catalog), "another share: the next stage asks again");
    is_uint(stats_of(store).source_bytes, catalog_bytes(world.d.catalog), "another share: only the rest was read");
    store_close(store);
}

/* More becomes this node's while it stages, and when it has. */
static void test_more(void)
{
    atomic_store(&world.all, false);
    faults_set("hang=small-18");
    struct store *store = dataset_store(&world.d, 128 * MIB, 0, "file=FILE", false);
    store_set_peers(store, &(struct store_peers){.keeps = is_ours, .fetch = nobody});
    is_int(store_stage_again(store, 5), 0, "more, before anything was staged");
    is_int(progress_of(store).state, STAGE_IDLE, "is not staged");
    store_stage_start(store, 1, NULL);
    wait_until(progress_of(store).kept > 0);
    atomic_store(&world.all, true);
    is_int(store_stage_again(store, 6), 0, "more, while staging runs");
    is_uint(progress_of(store).round, 6, "has a round of its own");
    is_int(progress_of(store).state, STAGE_RUNNING, "and waits for what hangs");
    faults_set("");
    wait_until(progress_of(store).state == STAGE_DONE);
    is_uint(progress_of(store).kept, catalog_bytes(world.d.catalog), "and is staged before staging is done");
    is_uint(stats_of(store).source_bytes, catalog_bytes(world.d.catalog), "each byte was read once");
    store_close(store);

    atomic_store(&world.all, false);
    store = dataset_store(&world.d, 128 * MIB, 0, NULL, false);
    store_set_peers(store, &(struct store_peers){.keeps = is_ours, .fetch = nobody});
    stage(store);
    store_stage_stop(store);
    atomic_store(&world.all, true);
    uint64_t bytes = stats_of(store).source_bytes;
    is_int(store_stage_again(store, 7), 0, "more, when staging was stopped after its end");
    ok(progress_of(store).state == STAGE_DONE && progress_of(store).round == 0, "is left alone");
    stage(store);
    is_int(store_stage_again(store, 8), 0, "more, when all is staged");
    wait_until(progress_of(store).state == STAGE_DONE);
    ok(progress_of(store).round == 8 && stats_of(store).source_bytes == catalog_bytes(world.d.catalog),
       "takes nothing but a round: %ju bytes, before %ju", (uintmax_t)stats_of(store).source_bytes, (uintmax_t)bytes);
    store_close(store);
    dataset_end(&world.d);
}

static void test_rounds(void)
{
    struct store *store = dataset_store(&d, 128 * MIB, 0, NULL, false);
    is_uint(progress_of(store).round, 0, "no round");
    is_int(store_stage_start(store, 7, NULL), 0, "the first round");
    wait_until(progress_of(store).state == STAGE_DONE);
    is_uint(progress_of(store).round, 7, "is known");
    uint64_t elapsed = progress_of(store).elapsed;
    is_int(store_stage_start(store, 7, NULL), 0, "the same again");
    is_int(store_stage_start(store, 6, NULL), 0, "an earlier one");
    ok(progress_of(store).elapsed == elapsed && progress_of(store).round == 7, "change nothing");
    clock_stand();
    is_int(store_stage_start(store, 0, NULL), 0, "without a round");
    wait_until(progress_of(store).state == STAGE_DONE);
    ok(progress_of(store).elapsed == 0 && progress_of(store).round == 7, "it is staged again, in no new round");
    clock_run();
    faults_set("hang=middle");
    store_close(store);

    store = dataset_store(&d, 128 * MIB, 0, "file=FILE", false);
    is_int(store_stage_start(store, 1, NULL), 0, "a slow round");
    wait_until(progress_of(store).kept > 0);
    is_int(store_stage_start(store, 2, NULL), 0, "the next one while it runs");
    is_uint(progress_of(store).round, 2, "is heard of");
    ok(progress_of(store).state == STAGE_RUNNING && progress_of(store).kept > 0, "and what runs goes on");
    faults_set("");
    wait_until(progress_of(store).state == STAGE_DONE);
    is_uint(stats_of(store).source_bytes, catalog_bytes(d.catalog), "each byte was read once");
    store_close(store);
}

/* Of the dataset: "large", "middle", some small ones; NULL ends them. */
static struct samples *choose(const char *const *name)
{
    struct samples *list;
    uint32_t n = 0, *file = calloc(8, sizeof *file);
    for (; name[n]; n++) {
        uint64_t ino;
        if (catalog_find(d.catalog, name[n], strlen(name[n]), &ino) || catalog_ino_file(d.catalog, ino, &file[n]))
            bail_out("%s", name[n]);
    }
    if (samples_from_files(d.catalog, file, n, &list))
        bail_out("no list");
    return list;
}

static void test_chosen(void)
{
    struct samples *some = choose((const char *const[]){"middle", "small/7", NULL});
    struct samples *large = choose((const char *const[]){"large", "small/3", NULL});
    struct store *store = dataset_store(&d, 128 * MIB, 0, NULL, false);
    is_int(store_stage_start(store, 1, some), 0, "two files are chosen");
    wait_until(progress_of(store).state == STAGE_DONE);
    struct stage_progress p = progress_of(store);
    is_uint(p.files_total, 2, "they alone are counted");
    is_uint(p.files, 2, "and looked at");
    is_uint(p.bytes_total, 3 * MIB + SMALL_BYTES, "with their bytes");
    is_uint(p.kept, p.bytes_total, "and kept");
    is_uint(stats_of(store).source_bytes, p.bytes_total, "nothing else was read");
    is_int(store_stage_again(store, 3), 0, "more, when they are staged");
    wait_until(progress_of(store).state == STAGE_DONE);
    is_uint(progress_of(store).files_total, 2, "is the same choice");
    is_int(store_stage_start(store, 4, NULL), 0, "then all");
    wait_until(progress_of(store).state == STAGE_DONE);
    is_uint(progress_of(store).kept, catalog_bytes(d.catalog), "all is kept");
    faults_set("hang=large");
    store_close(store);

    store = dataset_store(&d, 128 * MIB, 0, "file=FILE", false);
    is_int(store_stage_start(store, 1, large), 0, "a choice that hangs");
    wait_until(progress_of(store).files == 2);
    is_int(store_stage_start(store, 3, some), 0, "another one while it runs");
    is_uint(progress_of(store).round, 3, "takes its place");
    ok(progress_of(store).bytes_total <= 3 * MIB + SMALL_BYTES, "the first one's totals are gone");
    faults_set("");
    wait_until(progress_of(store).state == STAGE_DONE);
    is_uint(progress_of(store).kept, 3 * MIB + SMALL_BYTES, "it is kept");
    ok(stats_of(store).source_bytes < 41 * MIB, "the first one was stopped");
    store_close(store);
    samples_put(some);
    samples_put(large);
}

/* One worker reads what is chosen in its order: the third hangs. */
static void test_chosen_order(void)
{
    struct samples *list = choose((const char *const[]){"small/9", "small/100", "small/2", "small/50", NULL});
    faults_set("hang=small/2");
    dataset_threads(1);
    struct store *store = dataset_store(&d, 128 * MIB, 0, "file=FILE", false);
    dataset_threads(4);
    enum tier_name tier;
    uint32_t last = samples_file(list, 3);
    is_int(store_stage_start(store, 1, list), 0, "an order");
    for (uint64_t i = 0; i < 2; i++)
        wait_until(store_where(store, samples_file(list, i), 0, &tier) == 0);
    ok(store_where(store, last, 0, &tier) == -ENOENT, "the first two come before the last");
    faults_set("");
    wait_until(progress_of(store).state == STAGE_DONE);
    is_uint(progress_of(store).kept, (uint64_t)4 * SMALL_BYTES, "all come");
    store_close(store);
    samples_put(list);
}

int main(void)
{
    log_to_file();
    setenv("DEALFS_STAGE_PATIENCE", "3600", 1); /* PATIENCE_S */
    dataset_begin(&d);
    for (int i = 0; i < SMALL; i++)
        dataset_add(&d, test_path("small/%d", i) + strlen(test_directory()) + 1, SMALL_BYTES);
    dataset_add(&d, "empty", 0);
    dataset_add(&d, "middle", 3 * MIB);
    dataset_add(&d, "large", 41 * MIB + 77);
    dataset_scan(&d);

    test_fill();
    test_full("a small ram tier", 20 * MIB, 0);
    test_full("small tiers", 12 * MIB, 16 * MIB);
    test_none();
    test_stop();
    test_hang();
    test_close();
    test_failures();
    test_readers_first();
    test_locked();
    test_rounds();
    test_chosen();
    test_chosen_order();
    test_share();
    test_more();

    dataset_end(&d);
    return done_testing();
}
