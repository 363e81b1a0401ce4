/* The store: every read is right or fails with the right error, whatever is held, loaded, changed or broken. The clock
 * stands, so that no disk of a busy machine passes for one that hangs; tests move it. */
#include "tests/fs/base/moved-clock.h"
#include "tests/fs/store/dataset.h"
#include "tests/lib/tap.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

static const struct {
    const char *path;
    uint64_t size;
} files[] = {
    {"size/0", 0},
    {"size/1", 1},
    {"size/4095", 4095},
    {"size/4096", 4096},
    {"size/128K-1", VALUE_BYTES - 1},
    {"size/128K", VALUE_BYTES},
    {"size/128K+1", VALUE_BYTES + 1},
    {"size/1M-1", SPAN_BYTES - 1},
    {"size/1M", SPAN_BYTES},
    {"size/1M+1", SPAN_BYTES + 1},
    {"size/4M-1", PIECE_BYTES - 1},
    {"size/4M", PIECE_BYTES},
    {"size/4M+1", PIECE_BYTES + 1},
    {"size/9M-random", 9 * 1024 * 1024 + 12345},
    {"size/64M-1-sparse", EXTENT_BYTES - 1},
    {"size/64M-sparse", EXTENT_BYTES},
    {"size/64M+1-sparse", EXTENT_BYTES + 1},
    {"slow/one", 100000},
    {"slow/two", 3000000},
    {"slow/three", 6000000},
    {"change/me", 50000},
};
enum { FILES = sizeof files / sizeof *files };

static struct dataset d;

static struct span whole(const char *path)
{
    uint32_t file = dataset_file(&d, path);
    uint64_t size = dataset_size(&d, file);
    return (struct span){.file = file, .length = size < SPAN_BYTES ? (uint32_t)size : SPAN_BYTES};
}

/* The whole file, in spans of up to the longest. */
static int read_all(struct store *store, const char *path)
{
    struct span span = whole(path);
    uint64_t size = dataset_size(&d, span.file);
    int error = 0;
    for (; !error && span.offset < size; span.offset += span.length) {
        span.length = size - span.offset < SPAN_BYTES ? (uint32_t)(size - span.offset) : SPAN_BYTES;
        error = read_check(store, &d, &span, NULL);
    }
    return error;
}

static void test_arguments(void)
{
    struct store *store = dataset_store(&d, 64 * MIB, 0, NULL, false);
    uint32_t file = dataset_file(&d, "size/4096");
    const struct span bad[] = {
        {.file = catalog_files(d.catalog), .length = 1},
        {.file = file, .length = 0},
        {.file = file, .length = 4097},
        {.file = file, .offset = 4096, .length = 1},
        {.file = file, .offset = 4095, .length = 2},
        {.file = file, .offset = UINT64_MAX, .length = 2},
        {.file = dataset_file(&d, "size/0"), .length = 1},
        {.file = dataset_file(&d, "size/4M"), .length = SPAN_BYTES + 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        is_int(read_check(store, &d, &bad[i], NULL), -EINVAL, "bad span %zu", i);
    is_uint(stats_of(store).errors[EINVAL], sizeof bad / sizeof *bad, "they are counted");
    enum tier_name tier;
    is_int(store_where(store, dataset_file(&d, "size/0"), 0, &tier), -ENOENT, "an empty file is nowhere");
    is_int(store_where(store, catalog_files(d.catalog), 0, &tier), -ENOENT, "nor is one that does not exist");
    store_close(store);
    store_close(NULL);
}

static void test_bytes(const char *what, uint64_t ram, uint64_t ssd)
{
    struct store *store = dataset_store(&d, ram, ssd, NULL, false);
    uint64_t random = 7;
    for (int i = 1; i < FILES; i++) {
        int error = 0;
        for (int n = 0; n < 30 && !error; n++) {
            struct span span = dataset_random_span(&d, dataset_file(&d, files[i].path), &random);
            error = read_check(store, &d, &span, NULL);
        }
        is_int(error, 0, "%s: random spans of %s", what, files[i].path);
    }
    for (int i = 1; i < FILES; i++)
        is_int(read_all(store, files[i].path), 0, "%s: all of %s", what, files[i].path);
    struct store_stats stats = stats_of(store);
    for (enum tier_name t = 0; t < TIERS; t++)
        ok(stats.tier[t].held <= stats.tier[t].capacity, "%s: the %s tier keeps its budget", what, tier_names[t]);
    if (ram + ssd > 256 * MIB)
        is_uint(stats.source_bytes, catalog_bytes(d.catalog), "%s: every byte was read from the source once", what);
    if (ram + ssd == 0)
        ok(stats.reads[PLACE_RAM] + stats.reads[PLACE_SSD] == 0, "%s: every read came from the source", what);
    uint64_t reads = 0, buckets = 0;
    for (int p = 0; p < PLACES; p++) {
        reads += stats.reads[p];
        for (int i = 0; i < STORE_BUCKETS; i++)
            buckets += stats.latency[p][i];
    }
    is_uint(buckets, reads, "%s: each read is in one bucket of the histogram", what);
    store_close(store);
}

static void test_places(void)
{
    struct store *store = dataset_store(&d, 64 * MIB, 0, NULL, false);
    struct span span = whole("size/4095");
    enum place place;
    enum tier_name tier = TIERS;
    is_int(store_where(store, span.file, 0, &tier), -ENOENT, "not held at first");
    is_int(read_check(store, &d, &span, &place), 0, "a first read");
    is_int(place, PLACE_SOURCE, "came from the source");
    is_int(read_check(store, &d, &span, &place), 0, "a second read");
    is_int(place, PLACE_RAM, "came from the RAM tier");
    is_int(store_where(store, span.file, 0, &tier), 0, "held");
    is_int(tier, TIER_RAM, "in the RAM tier");
    struct store_stats stats = stats_of(store);
    is_uint(stats.reads[PLACE_SOURCE], 1, "counted by place: source");
    is_uint(stats.reads[PLACE_RAM], 1, "counted by place: ram");
    is_uint(stats.bytes[PLACE_RAM], 4095, "with its bytes");
    is_uint(stats.source_samples, 1, "one file was opened");
    store_close(store);

    store = dataset_store(&d, 64 * MIB, 0, NULL, true);
    is_int(read_check(store, &d, &span, &place), 0, "a read after the store was opened again");
    is_int(place, PLACE_RAM, "comes from what was kept");
    is_uint(stats_of(store).source_samples, 0, "and the source is not touched");
    store_close(store);

    store = dataset_store(&d, 0, 64 * MIB, NULL, false);
    is_int(read_check(store, &d, &span, &place), 0, "without RAM tier");
    is_int(read_check(store, &d, &span, &place), 0, "a second read");
    is_int(place, PLACE_SSD, "comes from the SSD tier");
    store_close(store);
}

static void test_large_random(void)
{
    struct store *store = dataset_store(&d, 256 * MIB, 0, NULL, false);
    struct span span = {.file = dataset_file(&d, "size/64M-sparse"), .length = 4096};
    bool touched[EXTENT_BYTES / VALUE_BYTES] = {false};
    uint64_t random = 3;
    int error = 0, values = 0;
    for (int i = 0; i < 200 && !error; i++) {
        span.offset = random_next(&random) % (EXTENT_BYTES / 4096) * 4096;
        values += !touched[span.offset / VALUE_BYTES];
        touched[span.offset / VALUE_BYTES] = true;
        error = read_check(store, &d, &span, NULL);
    }
    is_int(error, 0, "200 random reads in a large file");
    uint64_t bytes = stats_of(store).source_bytes;
    ok(bytes >= (uint64_t)values * VALUE_BYTES, "fetched each value touched");
    ok(bytes <= (uint64_t)(values + 40) * VALUE_BYTES, "and hardly more: %d values, %.1f fetched", values,
       (double)bytes / VALUE_BYTES);
    store_close(store);
}

static void test_large_sequence(void)
{
    struct store *store = dataset_store(&d, 256 * MIB, 0, NULL, false);
    struct span span = {.file = dataset_file(&d, "size/64M+1-sparse"), .length = VALUE_BYTES};
    int error = 0;
    for (; !error && span.offset + span.length <= EXTENT_BYTES; span.offset += span.length) {
        if (span.offset % PIECE_BYTES >= 2 * VALUE_BYTES)
            wait_until(store_holds(store, span.file, span.offset));
        error = read_check(store, &d, &span, NULL);
    }
    is_int(error, 0, "a sequence of reads through a large file, of which the rest of a piece comes by itself");
    struct store_stats stats = stats_of(store);
    ok(stats.source_bytes >= EXTENT_BYTES && stats.source_bytes <= EXTENT_BYTES + 1, "reads each byte once");
    ok(stats.reads[PLACE_SOURCE] <= 2 * (EXTENT_BYTES / PIECE_BYTES),
       "and waits for two values of a piece at most: %llu", (unsigned long long)stats.reads[PLACE_SOURCE]);
    store_close(store);
}

static void test_changed(void)
{
    struct store *store = dataset_store(&d, 64 * MIB, 0, NULL, false);
    struct span held = whole("size/4096"), changed = whole("change/me"), other = whole("size/1M");
    is_int(read_check(store, &d, &held, NULL), 0, "a file is held");
    if (truncate(dataset_path(&d, "change/me"), 3) < 0 || unlink(dataset_path(&d, "size/4096")) < 0)
        bail_out("change the source");
    log_text();
    is_int(read_check(store, &d, &changed, NULL), -ESTALE, "a file that shrank is stale");
    ok(strstr(log_text(), "read change/me from the source"), "the log names it");
    is_int(read_check(store, &d, &changed, NULL), -ESTALE, "and again");
    is_uint(stats_of(store).errors[ESTALE], 2, "counted by errno");
    is_int(read_check(store, &d, &held, NULL), 0, "a held file that was removed is still right");
    is_int(read_check(store, &d, &other, NULL), 0, "others can be read");
    store_close(store);
    dataset_add(&d, "size/4096", 4096);
    unlink(dataset_path(&d, "change/me"));
    dataset_add(&d, "change/me", 50000);
    dataset_scan(&d);
}

enum { PARKED = 256 };
struct parked {
    struct store_read read;
    atomic_int error; /* 1: not answered */
};

/* As a server does: an answer is used and released at once, for a tier cannot reuse its memory before. */
static void parked_done(struct store_read *read, int error)
{
    if (!error && !dataset_matches(&d, &read->span, &read->answer))
        error = -EBADMSG;
    answer_release(&read->answer);
    atomic_store(&((struct parked *)read)->error, error);
}

/* Reads of the slow files, all of which park. */
static struct parked *park(struct store *store, int count)
{
    static const char *const slow[] = {"slow/one", "slow/two", "slow/three"};
    struct parked *parked = calloc((size_t)count, sizeof *parked);
    uint64_t random = 11;
    int in_progress = 0;
    for (int i = 0; i < count; i++) {
        atomic_init(&parked[i].error, 1);
        parked[i].read.done = parked_done;
        parked[i].read.span = dataset_random_span(&d, dataset_file(&d, slow[i % 3]), &random);
        in_progress += store_read(store, &parked[i].read) == -EINPROGRESS;
    }
    is_int(in_progress, count, "%d readers are parked and hold no thread", count);
    return parked;
}

/* All are answered alike; when with 0, by the right bytes. */
static void check_parked(struct parked *parked, int count, int error, const char *what)
{
    int answered = 0;
    for (int i = 0; i < count; i++) {
        wait_until(atomic_load(&parked[i].error) != 1);
        answered += atomic_load(&parked[i].error) == error;
    }
    is_int(answered, count, "%s: all are answered: %s", what, error ? strerror(-error) : "the right bytes");
    free(parked);
}

static void test_parked(const char *what, uint64_t ram)
{
    faults_set("");
    struct store *store = dataset_store(&d, ram, 0, "file=FILE", false);
    struct span held = whole("size/1M");
    is_int(read_check(store, &d, &held, NULL), 0, "%s: a file is read", what);
    uint64_t before = stats_of(store).source_bytes;
    faults_set("hang=slow/*");
    struct parked *parked = park(store, PARKED);
    is_uint(stats_of(store).parked, PARKED, "%s: they are counted", what);
    int error = 0;
    for (int i = 0; i < 500 && ram && !error; i++)
        error = read_check(store, &d, &held, NULL);
    is_int(error, 0, "%s: a held file is read meanwhile", what);
    faults_set("");
    check_parked(parked, PARKED, 0, what);
    wait_until(stats_of(store).parked == 0);
    uint64_t bytes = stats_of(store).source_bytes - before;
    if (ram)
        ok(bytes <= 100000 + 3000000 + 6000000, "%s: nothing was read twice", what);
    store_close(store);
}

/* Every other one gives up. Those that a worker takes at this moment are unavailable, but there are few workers. */
static void test_cancel(const char *what, uint64_t ram)
{
    faults_set("hang=slow/*");
    struct store *store = dataset_store(&d, ram, 0, "file=FILE", false);
    struct parked *parked = park(store, PARKED);
    int taken = 0;
    for (int i = 0; i < PARKED; i += 2) {
        if (!store_cancel(store, &parked[i].read))
            continue;
        atomic_store(&parked[i].error, 0);
        taken++;
    }
    is_int(taken, PARKED / 2, "%s: reads that are parked are taken back", what);
    is_uint(stats_of(store).parked, PARKED / 2, "%s: the others wait", what);
    ok(!store_cancel(store, &parked[0].read), "%s: nothing is taken back twice", what);
    for (int i = 0; i < PARKED; i += 2) /* `done` on one of these would write here */
        parked[i].read.done = NULL;
    faults_set("");
    check_parked(parked, PARKED, 0, what);
    wait_until(stats_of(store).parked == 0);
    store_close(store);
}

static void *close_store(void *store)
{
    store_close(store);
    return NULL;
}

static void test_close_while_parked(const char *what, uint64_t ram)
{
    faults_set("hang");
    struct store *store = dataset_store(&d, ram, 0, "file=FILE", false);
    struct parked *parked = park(store, PARKED);
    pthread_t closer;
    pthread_create(&closer, NULL, close_store, store);
    check_parked(parked, PARKED, -ESHUTDOWN, what);
    faults_set("");
    pthread_join(closer, NULL);
    pass("%s: and the store is closed when the source answers again", what);
}

struct halting {
    struct store_read read; /* first */
    sem_t ended, go_on;
};

static void halting_done(struct store_read *read, int error)
{
    struct halting *h = (struct halting *)read;
    (void)error;
    answer_release(&read->answer);
    sem_post(&h->ended);
    sem_wait(&h->go_on);
}

struct closer {
    struct store *store;
    atomic_int thread;
};

static void *close_known(void *argument)
{
    struct closer *c = argument;
    atomic_store(&c->thread, gettid());
    store_close(c->store);
    return NULL;
}

static bool is_asleep(int thread)
{
    CLEANUP_STR struct str status = STR_INIT;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
    return thread && file_read(AT_FDCWD, path, 4096, &status) == 0 && strstr(status.data, "State:\tS");
}

/* A load has ended, and the thread that answers its readers is slow. The one whom it comes to last asks for the SSD. */
static void test_close_while_answering(void)
{
    struct halting first = {.read.done = halting_done, .read.span = whole("slow/one")};
    struct parked last = {.read.done = parked_done, .read.span = first.read.span, .error = 1};
    struct parked other = {.read.done = parked_done, .read.span = whole("slow/two"), .error = 1};
    pthread_t closer;
    sem_init(&first.ended, 0, 0);
    sem_init(&first.go_on, 0, 0);
    faults_set("hang=slow/*");
    struct store *store = dataset_store(&d, 0, 64 * MIB, "file=FILE", false);
    is_int(store_load(store, &first.read), -EINPROGRESS, "a load is waited for");
    is_int(store_read(store, &last.read), -EINPROGRESS, "by two");
    is_int(store_read(store, &other.read), -EINPROGRESS, "and another one");
    faults_set("hang=slow/two");
    sem_wait(&first.ended);
    struct closer closing = {.store = store};
    pthread_create(&closer, NULL, close_known, &closing);
    wait_until(atomic_load(&other.error) == -ESHUTDOWN);
    for (int i = 0, asleep = 0; asleep < 50; i++) { /* it is closed as far as it can be */
        wait_step(i, "the store waits");
        asleep = is_asleep(atomic_load(&closing.thread)) ? asleep + 1 : 0;
    }
    sem_post(&first.go_on);
    faults_set("");
    pthread_join(closer, NULL);
    is_int(atomic_load(&last.error), -ESHUTDOWN, "the store is closed while they are answered");
    sem_destroy(&first.ended);
    sem_destroy(&first.go_on);
}

static void test_errors(void)
{
    faults_set("errno=EIO,match=slow/*");
    struct store *store = dataset_store(&d, 64 * MIB, 0, "file=FILE", false);
    struct span span = whole("slow/one"), large = whole("slow/three"), other = whole("size/4M");
    is_int(read_check(store, &d, &span, NULL), -EIO, "the source's error is the reader's");
    is_int(read_check(store, &d, &large, NULL), -EIO, "also of a large file");
    is_int(read_check(store, &d, &other, NULL), 0, "others can be read");
    check_parked(park(store, 60), 60, -EIO, "many that wait for a source that fails");
    faults_set("");
    is_int(read_check(store, &d, &span, NULL), 0, "an error is not kept");
    is_int(read_check(store, &d, &large, NULL), 0, "nor that of a large file");
    store_close(store);
}

/* Takes the place of loads_add; the linker's --wrap sees to that. */
static atomic_bool no_memory;
struct load;
struct loads;
struct load *__real_loads_add(struct loads *loads, uint32_t file, uint64_t offset, uint32_t length);
struct load *__wrap_loads_add(struct loads *loads, uint32_t file, uint64_t offset, uint32_t length);
struct load *__wrap_loads_add(struct loads *loads, uint32_t file, uint64_t offset, uint32_t length)
{
    return atomic_load(&no_memory) ? NULL : __real_loads_add(loads, file, offset, length);
}

static void test_no_memory(void)
{
    struct store *store = dataset_store(&d, 64 * MIB, 0, NULL, false);
    struct span span = whole("slow/one");
    atomic_store(&no_memory, true);
    is_int(read_check(store, &d, &span, NULL), -ENOMEM, "without memory for a load the read fails");
    is_uint(stats_of(store).source_bytes, 0, "and reads nothing");
    atomic_store(&no_memory, false);
    is_int(read_check(store, &d, &span, NULL), 0, "the next read is right");
    store_close(store);
}

/* Of many reads: the one that took longest, by its file, time and place. */
static void test_slowest(void)
{
    struct parked parked = {.read.done = parked_done, .read.span = whole("slow/two"), .error = 1};
    faults_set("hang=slow/two");
    struct store *store = dataset_store(&d, 64 * MIB, 0, "file=FILE", false);
    is_uint(stats_of(store).slowest.answered, 0, "no READ: none is the slowest");
    struct span fast = whole("size/4095");
    for (int i = 0; i < 20; i++)
        is_int(read_check(store, &d, &fast, NULL), 0, "a read");
    is_int(store_read(store, &parked.read), -EINPROGRESS, "one that hangs");
    clock_add(60 * MILLISECOND);
    faults_set("");
    wait_until(atomic_load(&parked.error) == 0);
    for (int i = 0; i < 180; i++)
        is_int(read_check(store, &d, &fast, NULL), 0, "a read");
    struct slowest_read slowest = stats_of(store).slowest;
    is_uint(slowest.file, whole("slow/two").file, "the slowest READ is known by its file");
    is_uint(slowest.us, 60000, "its time");
    is_int(slowest.place, PLACE_SOURCE, "and the place of its bytes");
    store_close(store);
}

/* A tier that fails to give what it holds: the source has it too. */
static void test_tier_faults(void)
{
    faults_set("");
    struct store *store = dataset_store(&d, 64 * MIB, 0, "on=ram,file=FILE", false);
    struct span span = whole("size/1M"),
                large = {.file = dataset_file(&d, "slow/three"), .offset = 7, .length = 900000};
    is_int(read_check(store, &d, &span, NULL), 0, "a file is held");
    is_int(read_check(store, &d, &large, NULL), 0, "part of a large one, too");
    faults_set("errno=EIO");
    enum place place;
    is_int(read_check(store, &d, &span, &place), 0, "a tier that fails: the read does not");
    is_int(place, PLACE_SOURCE, "it is served from the source");
    is_int(read_check(store, &d, &large, &place), 0, "also of a large file");
    faults_set("errno=EIO,every=2");
    is_int(read_check(store, &d, &large, &place), 0, "a tier that fails every other time");
    faults_set("truncate=1");
    is_int(read_check(store, &d, &span, &place), 0, "a tier that answers too little");
    faults_set("");
    is_int(read_check(store, &d, &span, &place), 0, "and when it works again");
    is_int(place, PLACE_RAM, "it is used again");
    store_close(store);

    struct store_config config = {
        .catalog = d.catalog, .source = d.root, .source_threads = 1, .faults = "on=tape,hang"};
    is_int(store_open(&config, &store), -EINVAL, "faults on a layer that is none are refused");
    config.faults = "delay=1;on=ram,nonsense=1";
    is_int(store_open(&config, &store), -EINVAL, "so are faults that nobody understands");
}

static bool read_from(struct store *store, const struct span *span, enum place wanted)
{
    enum place place;
    return read_check(store, &d, span, &place) == 0 && place == wanted;
}

/* Reads of what lies on an SSD that hangs are served from the source, which keeps nothing; in memory nobody notices. */
static void test_ssd_hangs(void)
{
    enum { READS = 40 };
    faults_set("");
    struct store *store = dataset_store(&d, 5 * MIB, 64 * MIB, "on=ssd,file=FILE", false);
    struct span in_memory = whole("size/1M");
    is_int(read_check(store, &d, &in_memory, NULL), 0, "a file is held in memory");
    ok(read_from(store, &in_memory, PLACE_RAM), "there");
    is_int(read_all(store, "slow/three"), 0, "another one is held");
    is_int(read_all(store, "slow/two"), 0, "one more");
    struct span on_ssd = whole("slow/two");
    ok(read_from(store, &on_ssd, PLACE_SSD), "on the SSD");

    faults_set("hang");
    struct parked *parked = calloc(READS, sizeof *parked);
    for (int i = 0; i < READS; i++) {
        atomic_init(&parked[i].error, 1);
        parked[i].read.done = parked_done;
        parked[i].read.span = on_ssd;
        if (store_read(store, &parked[i].read) != -EINPROGRESS)
            fail("a read of what hangs takes the caller's thread");
    }
    ok(read_from(store, &in_memory, PLACE_RAM), "the SSD hangs: what is in memory is read");
    ok(store_cancel(store, &parked[READS - 1].read), "a read that is queued can be taken back");
    ok(store_cancel(store, &parked[0].read), "and one that waits for the SSD");
    atomic_store(&parked[0].error, 0);
    atomic_store(&parked[READS - 1].error, 0);
    for (int i = 0; stats_of(store).parked; i++) {
        clock_add(100 * MILLISECOND);
        wait_step(i, "reads pass the SSD");
    }
    check_parked(parked, READS, 0, "the SSD hangs");
    ok(read_from(store, &on_ssd, PLACE_SOURCE), "then it is passed by");
    ok(strstr(log_text(), "bypassed"), "and the log says so");
    faults_set("");
    for (int i = 0; !read_from(store, &on_ssd, PLACE_SSD); i++) {
        clock_add(100 * MILLISECOND);
        wait_step(i, "the SSD is used again");
    }
    pass("once it answers, it is used again");
    uint64_t before = stats_of(store).tier[TIER_SSD].parts;
    is_int(read_all(store, "slow/two"), 0, "all is there still");
    is_uint(stats_of(store).tier[TIER_SSD].parts, before, "and nothing was kept twice");
    store_close(store);
}

static void test_no_room_reads_little(void)
{
    struct store *store = dataset_store(&d, 0, 0, NULL, false);
    is_int(dataset_open_files(&d), 0, "no file of the source is open");
    struct span span = {.file = dataset_file(&d, "size/64M-sparse"), .offset = 5 * MIB, .length = 4096};
    is_int(read_check(store, &d, &span, NULL), 0, "a read without any tier");
    is_uint(stats_of(store).source_bytes, 4096, "reads from the source what it needs");
    for (int i = 0; dataset_open_files(&d); i++) { /* when a worker wakes up, it sleeps again for 1.5 s */
        clock_add(2 * SECOND);
        wait_step(i, "no file is open");
    }
    pass("and an idle store keeps no file of the source open");
    store_close(store);
}

int main(void)
{
    log_to_file();
    clock_stand();
    dataset_begin(&d);
    for (int i = 0; i < FILES; i++)
        dataset_add(&d, files[i].path, files[i].size);
    dataset_scan(&d);

    test_arguments();
    test_bytes("ram", 512 * MIB, 0);
    test_bytes("ssd", 0, 512 * MIB);
    test_bytes("ram and ssd", 24 * MIB, 400 * MIB);
    test_bytes("tiny", 9 * MIB, 6 * MIB);
    test_bytes("no tiers", 0, 0);
    test_places();
    test_large_random();
    test_large_sequence();
    test_changed();
    test_parked("with room", 64 * MIB);
    test_parked("without room", 0);
    test_cancel("cancel, with room", 64 * MIB);
    test_cancel("cancel, without room", 0);
    test_close_while_parked("close, with room", 64 * MIB);
    test_close_while_parked("close, without room", 0);
    test_close_while_answering();
    test_errors();
    test_no_memory();
    test_slowest();
    test_tier_faults();
    test_ssd_hangs();
    test_no_room_reads_little();

    dataset_end(&d);
    return done_testing();
}
