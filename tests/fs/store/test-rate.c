/* `source_rate`: the store reads the source no faster, and readers do not wait for what is staged. */
#include "tests/fs/store/dataset.h"
#include "tests/lib/tap.h"

#include "fs/base/clock.h"
#include "fs/store/rate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

enum { BULKS = 12, BULK = 3 << 20, SMALLS = 10, SMALL = 30000 };

#define SLACK (2.0 * RATE_CREDIT_MS / 1000)

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

static void test_bound(void)
{
    struct store *store = open_store(16 * MIB);
    uint64_t began = clock_now();
    is_int(store_stage_start(store, 0, NULL), 0, "staging with 16 MiB/s");
    wait_until(progress_of(store).state == STAGE_DONE);
    double seconds = (double)(clock_now() - began) / 1e9;
    uint64_t all = catalog_bytes(d.catalog);
    is_uint(progress_of(store).kept, all, "all is kept");
    ok((double)(all - BULK) / (16 * (double)MIB) <= seconds + SLACK, "takes its time: %.2f s", seconds);
    store_close(store);

    store = open_store(8 * MIB);
    began = clock_now();
    int wrong = 0;
    for (int i = 0; i < 6; i++)
        wrong += read_first(store, test_path("bulk/%d", i) + strlen(test_directory()) + 1) != 0;
    seconds = (double)(clock_now() - began) / 1e9;
    is_int(wrong, 0, "readers with 8 MiB/s");
    ok((double)(source_bytes(store) - BULK) / (8 * (double)MIB) <= seconds + SLACK, "take theirs: %.2f s", seconds);
    store_close(store);
}

/* A bulk file takes 24 s of this rate: several of them wait when the readers come. */
static void test_readers_first(void)
{
    struct store *store = open_store(128 << 10);
    is_int(store_stage_start(store, 0, NULL), 0, "staging at a low rate");
    wait_until(source_bytes(store) >= BULK);
    uint64_t began = clock_now();
    int wrong = 0;
    for (int i = 0; i < SMALLS; i++)
        wrong += read_first(store, test_path("small/%d", i) + strlen(test_directory()) + 1) != 0;
    is_int(wrong, 0, "readers meanwhile");
    ok(clock_now() - began < 12 * SECOND, "do not wait for what is staged: %.2f s",
       (double)(clock_now() - began) / 1e9);
    is_int(progress_of(store).state, STAGE_RUNNING, "which goes on");
    began = clock_now();
    is_int(read_first(store, "bulk/1"), 0, "a reader of what waits already");
    ok(clock_now() - began < 12 * SECOND, "takes it with it: %.2f s", (double)(clock_now() - began) / 1e9);
    began = clock_now();
    store_close(store);
    ok(clock_now() - began < 12 * SECOND, "the end waits for nothing");
}

/* The last loads take longer than staging waits for a source that hangs. */
static void test_patience(void)
{
    enum { FEW = 3 };
    struct samples *few;
    uint32_t *file = calloc(FEW, sizeof *file);
    for (uint32_t i = 0; i < FEW; i++)
        file[i] = dataset_file(&d, test_path("bulk/%u", i) + strlen(test_directory()) + 1);
    if (samples_from_files(d.catalog, file, FEW, &few))
        bail_out("no list");
    setenv("DEALFS_STAGE_PATIENCE", "1", 1);
    struct store *store = open_store(2 * MIB);
    is_int(store_stage_start(store, 0, few), 0, "staging with little patience");
    wait_until(progress_of(store).state == STAGE_DONE);
    is_uint(progress_of(store).failed, 0, "nothing is given up");
    is_uint(progress_of(store).kept, (uint64_t)FEW * BULK, "all is kept");
    store_close(store);
    samples_put(few);
    unsetenv("DEALFS_STAGE_PATIENCE");
}

int main(void)
{
    log_to_file();
    dataset_begin(&d);
    for (int i = 0; i < BULKS; i++)
        dataset_add(&d, test_path("bulk/%d", i) + strlen(test_directory()) + 1, BULK);
    for (int i = 0; i < SMALLS; i++)
        dataset_add(&d, test_path("small/%d", i) + strlen(test_directory()) + 1, SMALL);
    dataset_scan(&d);
    test_arithmetic();
    test_bound();
    test_readers_first();
    test_patience();
    dataset_end(&d);
    return done_testing();
}
