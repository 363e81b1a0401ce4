/* Many threads read at random, a third of them as the feeder, and every byte is checked; then each byte must have been
 * read from the source once.
 *
 *   stress-store [ROUNDS]     after that there are ROUNDS (2) rounds with a source that fails and comes back, tiers
 * that lose what they hold, staging that starts and stops, and stores that close and open */
#include "tests/fs/base/moved-clock.h"
#include "tests/fs/store/dataset.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

enum { THREADS = 64, SMALL = 300 };

static struct dataset d;

struct reader {
    pthread_t thread;
    struct store *store;
    uint64_t random, bytes;
    const atomic_bool *stop; /* NULL: read every file once, in an order of one's own, and end */
    bool forgiving;          /* a read may fail, but never be wrong */
    bool fed;                /* it is the feeder */
    int failed;
};

static int read_one(struct reader *r, uint32_t file)
{
    if (!dataset_size(&d, file))
        return 0;
    struct span span = dataset_random_span(&d, file, &r->random);
    int error = r->fed ? read_check_fed(r->store, &d, &span) : read_check(r->store, &d, &span, NULL);
    r->bytes += span.length;
    return error == -EBADMSG || !r->forgiving ? error : 0;
}

static void *reader_main(void *argument)
{
    struct reader *r = argument;
    uint32_t files = catalog_files(d.catalog), start = (uint32_t)(random_next(&r->random) % files);
    for (uint32_t i = 0; r->stop ? !atomic_load(r->stop) : i < files; i++) {
        uint32_t file = r->stop ? (uint32_t)(random_next(&r->random) % files) : (start + i) % files;
        r->failed += read_one(r, file) != 0;
    }
    return NULL;
}

static void begin_readers(struct reader *readers, int count, struct store *store, const atomic_bool *stop)
{
    for (int i = 0; i < count; i++) {
        readers[i] = (struct reader){
            .store = store, .random = (uint64_t)i, .stop = stop, .forgiving = stop != NULL, .fed = i % 3 == 0};
        if (pthread_create(&readers[i].thread, NULL, reader_main, &readers[i]))
            bail_out("no thread");
    }
}

static int end_readers(struct reader *readers, int count)
{
    int failed = 0;
    for (int i = 0; i < count; i++) {
        pthread_join(readers[i].thread, NULL);
        failed += readers[i].failed;
    }
    return failed;
}

/* Whole files, so that what was touched is all there is. */
static int read_rest(struct store *store)
{
    int failed = 0;
    for (uint32_t file = 0; file < catalog_files(d.catalog); file++) {
        uint64_t size = dataset_size(&d, file);
        struct span span = {.file = file};
        for (; span.offset < size; span.offset += span.length) {
            span.length = size - span.offset < SPAN_BYTES ? (uint32_t)(size - span.offset) : SPAN_BYTES;
            failed += read_check(store, &d, &span, NULL) != 0;
        }
    }
    return failed;
}

static void test_once(const char *what, uint64_t ram, uint64_t ssd, bool staging)
{
    struct reader readers[THREADS];
    struct store *store = dataset_store(&d, ram, ssd, NULL, false);
    if (staging)
        store_stage_start(store, 0, NULL);
    begin_readers(readers, THREADS, store, NULL);
    is_int(end_readers(readers, THREADS), 0, "%s: %d threads read every file", what, THREADS);
    is_int(read_rest(store), 0, "%s: and all the rest", what);
    is_uint(stats_of(store).source_bytes, catalog_bytes(d.catalog), "%s: each byte was read from the source once",
            what);
    wait_until(stats_of(store).parked == 0);
    pass("%s: nobody waits", what);
    for (enum place place = 0; place < PLACES; place++) {
        wait_until(stats_of(store).fed.waits[place] == 0);
        pass("%s: nor does what is fed, for %s", what, place_names[place]);
    }
    store_close(store);
}

static void disturb(struct store *store, uint64_t *random)
{
    static const char *const faults[] = {
        "", "", "delay=2", "errno=EIO,every=3", "errno=ESTALE,match=small/1*", "hang=large*",
    };
    faults_set(faults[random_next(random) % (sizeof faults / sizeof *faults)]);
    if (random_next(random) % 2)
        store_stage_start(store, 0, NULL);
    else
        store_stage_stop(store);
}

static void test_disturbed(int rounds)
{
    enum { DISTURBANCES = 1000 };
    struct reader readers[8];
    uint64_t random = 5;
    int failed = 0;
    for (int round = 0; round < rounds; round++) {
        atomic_bool stop = false;
        faults_set("");
        struct store *store = dataset_store(&d, 30 * MIB, 20 * MIB, "file=FILE;on=ram,errno=EIO,every=50", round % 4);
        begin_readers(readers, 8, store, &stop);
        for (int i = 0; i < DISTURBANCES; i++) {
            disturb(store, &random);
            wait_step(0, "");
        }
        faults_set("");
        atomic_store(&stop, true);
        failed += end_readers(readers, 8);
        store_close(store);
    }
    is_int(failed, 0, "disturbed %d times: no read was wrong", rounds * DISTURBANCES);
}

int main(int argc, char **argv)
{
    log_to_file();
    dataset_begin(&d);
    for (int i = 0; i < SMALL; i++)
        dataset_add(&d, test_path("small/%d", i) + strlen(test_directory()) + 1, (uint64_t)i * 397);
    dataset_add(&d, "middle-sparse", 3 * MIB + 1);
    dataset_add(&d, "large", 21 * MIB + 77);
    dataset_add(&d, "large-sparse", 65 * MIB);
    dataset_scan(&d);
    clock_stand(); /* no disk of a busy machine passes for one that hangs */
    test_once("ram", 256 * MIB, 0, false);
    test_once("ssd", 0, 256 * MIB, false);
    test_once("both, while it is staged", 30 * MIB, 256 * MIB, true);
    clock_run();
    test_disturbed(argc > 1 ? atoi(argv[1]) : 2);
    dataset_end(&d);
    return done_testing();
}
