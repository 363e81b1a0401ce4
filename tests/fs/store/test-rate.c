/* `source_rate`: the store reads the source no faster, and readers do not wait for what is staged. The clock stands,
 * and the tests move it. */
#include "tests/fs/base/moved-clock.h"
#include "tests/fs/store/dataset.h"
#include "tests/lib/tap.h"

#include "fs/store/loader.h"
#include "fs/store/rate.h"
#include "fs/store/store-inside.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

enum { BULKS = 12, BULK = 3 << 20, SMALLS = 10, SMALL = 30000 };

static struct dataset d;

static uint64_t source_bytes(struct store *store)
{
    struct store_stats stats;
    store_stats(store, &stats);
    return stats.source_bytes;
}

static struct store *open_store(uint64_t rate)
{
    dataset_rate(rate);
    return dataset_store(&d, 128 * MIB, 0, NULL, false);
}

static int read_first(struct store *store, const char *path)
{
    struct span span = {.file = dataset_file(&d, path), .length = 4096};
    return read_check(store, &d, &span, NULL);
}

static void test_arithmetic(void)
{
    struct source_rate r = {.most = 1000};
    uint64_t now = 100 * SECOND;
    is_uint(rate_due(&r, false), 0, "at first nothing is to be paid");
    rate_pay(&r, false, 2000, now);
    uint64_t credit = RATE_CREDIT_MS * MILLISECOND;
    is_uint(rate_due(&r, false), now + 2 * SECOND - credit, "what nobody waits for is paid in its time");
    is_uint(rate_due(&r, true), 0, "readers do not wait for it");
    rate_pay(&r, true, 1000, now);
    is_uint(rate_due(&r, true), now + SECOND - credit, "except for what they have read");
    is_uint(rate_due(&r, false), now + 3 * SECOND - credit, "and the others for both");
    rate_pay(&r, true, 500, now + 10 * SECOND);
    is_uint(rate_due(&r, true), now + 10 * SECOND + SECOND / 2 - credit, "a pause earns no more than the credit");
}

struct reading {
    struct store *store;
    int wrong;
    atomic_bool over;
};

static void *read_bulks(void *argument)
{
    struct reading *r = argument;
    for (int i = 0; i < 6; i++)
        r->wrong += read_first(r->store, test_path("bulk/%d", i) + strlen(test_directory()) + 1) != 0;
    atomic_store(&r->over, true);
    return NULL;
}

/* Moves the clock until the staging, or the reading, is over. True: at no time was more read than the rate allows. */
static bool is_bound(struct store *store, uint64_t rate, const struct reading *r)
{
    uint64_t began = clock_now(), credit = RATE_CREDIT_MS * MILLISECOND;
    bool bound = true;
    for (int i = 0; r ? !atomic_load(&r->over) : progress_of(store).state == STAGE_RUNNING; i++) {
        uint64_t most = (clock_now() - began + credit) / MILLISECOND * rate / 1000 + BULK;
        bound = bound && source_bytes(store) <= most;
        clock_add(10 * MILLISECOND);
        wait_step(i, "all is read");
    }
    return bound;
}

static void test_bound(void)
{
    struct store *store = open_store(16 * MIB);
    is_int(store_stage_start(store, 0, NULL), 0, "staging with 16 MiB/s");
    ok(is_bound(store, 16 * MIB, NULL), "reads no faster");
    is_uint(progress_of(store).kept, catalog_bytes(d.catalog), "all is kept");
    store_close(store);

    pthread_t thread;
    store = open_store(8 * MIB);
    struct reading reading = {.store = store};
    if (pthread_create(&thread, NULL, read_bulks, &reading))
        bail_out("a thread");
    ok(is_bound(store, 8 * MIB, &reading), "readers with 8 MiB/s read no faster");
    pthread_join(thread, NULL);
    is_int(reading.wrong, 0, "and what is right");
    store_close(store);
}

/* A bulk file takes 24 s of this rate: several of them wait when the readers come. A small one takes 0.23 s. */
static void test_readers_first(void)
{
    struct store *store = open_store(128 << 10);
    is_int(store_stage_start(store, 0, NULL), 0, "staging at a low rate");
    wait_until(source_bytes(store) >= BULK);
    int wrong = 0;
    for (int i = 0; i < SMALLS; i++) {
        clock_add(SECOND / 4);
        wrong += read_first(store, test_path("small/%d", i) + strlen(test_directory()) + 1) != 0;
    }
    is_int(wrong, 0, "readers meanwhile do not wait for what is staged");
    is_int(progress_of(store).state, STAGE_RUNNING, "which goes on");
    clock_add(SECOND / 4);
    is_int(read_first(store, "bulk/1"), 0, "a reader of what waits already takes it with it");
    store_close(store);
    pass("the end waits for nothing");
}

/* The last loads wait for the rate for longer than staging waits for a source that hangs. */
static void test_patient_staging(void)
{
    enum { FEW = 3, LOOKS = 50 };
    struct samples *few;
    uint32_t *file = calloc(FEW, sizeof *file);
    for (uint32_t i = 0; i < FEW; i++)
        file[i] = dataset_file(&d, test_path("bulk/%u", i) + strlen(test_directory()) + 1);
    if (samples_from_files(d.catalog, file, FEW, &few))
        bail_out("no list");
    setenv("DEALFS_STAGE_PATIENCE", "1", 1);
    struct store *store = open_store(1 * MIB);
    is_int(store_stage_start(store, 0, few), 0, "staging with little patience");
    wait_until(source_bytes(store) == BULK && loader_pays(store->loader));
    clock_add(2 * SECOND);
    for (int i = 0; i < LOOKS && progress_of(store).state == STAGE_RUNNING; i++)
        wait_step(i, "staging looks at the clock");
    is_int(progress_of(store).state, STAGE_RUNNING, "waits for the rate");
    is_uint(progress_of(store).failed, 0, "nothing is given up");
    store_close(store);
    samples_put(few);
}

int main(void)
{
    log_to_file();
    setenv("DEALFS_STAGE_PATIENCE", "1000000", 1);
    clock_stand();
    dataset_begin(&d);
    for (int i = 0; i < BULKS; i++)
        dataset_add(&d, test_path("bulk/%d", i) + strlen(test_directory()) + 1, BULK);
    for (int i = 0; i < SMALLS; i++)
        dataset_add(&d, test_path("small/%d", i) + strlen(test_directory()) + 1, SMALL);
    dataset_scan(&d);
    test_arithmetic();
    test_bound();
    test_readers_first();
    test_patient_staging();
    dataset_end(&d);
    return done_testing();
}
