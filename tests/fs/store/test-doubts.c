/* fs/store/doubts.h: files whose new ctime is excused, and whose bytes have changed nevertheless. */
#include "tests/fs/base/moved-clock.h"
#include "tests/fs/store/dataset.h"
#include "tests/lib/tap.h"

#include "fs/store/distrust.h"
#include "fs/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

static struct dataset d;

/* Another byte in each value, and the mtime of before. */
static void rewrite(const char *path)
{
    struct stat st;
    CLEANUP_CLOSE int fd = open(dataset_path(&d, path), O_WRONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        bail_out("open %s: %s", path, strerror(errno));
    for (off_t at = 0; at < st.st_size; at += VALUE_BYTES)
        if (pwrite(fd, "\n", 1, at) != 1)
            bail_out("write %s: %s", path, strerror(errno));
    if (futimens(fd, (struct timespec[2]){st.st_atim, st.st_mtim}) < 0)
        bail_out("touch %s: %s", path, strerror(errno));
}

static void change_mode(const char *path, mode_t mode)
{
    if (chmod(dataset_path(&d, path), mode) < 0)
        bail_out("chmod %s: %s", path, strerror(errno));
}

static struct span first_bytes(const char *path)
{
    uint32_t file = dataset_file(&d, path);
    uint64_t size = dataset_size(&d, file);
    return (struct span){.file = file, .length = size < 1000 ? (uint32_t)size : 1000};
}

static struct span last_bytes(const char *path)
{
    struct span span = first_bytes(path);
    span.offset = dataset_size(&d, span.file) - span.length;
    return span;
}

static int read_first(struct store *store, const char *path)
{
    struct span span = first_bytes(path);
    return read_check(store, &d, &span, NULL);
}

static int read_last(struct store *store, const char *path)
{
    struct span span = last_bytes(path);
    return read_check(store, &d, &span, NULL);
}

static uint64_t source_bytes(struct store *store)
{
    return stats_of(store).source_bytes;
}

/* --- while the store is open --- */

static void test_live(void)
{
    struct store *store = dataset_store(&d, 64 * MIB, 0, NULL, false);
    is_int(read_first(store, "live/same"), 0, "the beginning of a large file");
    change_mode("live/same", 0600);
    uint64_t before = source_bytes(store);
    is_int(read_last(store, "live/same"), 0, "its mode changes: the end is read");
    struct span end = last_bytes("live/same");
    uint64_t size = dataset_size(&d, end.file), last = size - (size - 1) / VALUE_BYTES * VALUE_BYTES;
    is_uint(source_bytes(store) - before, VALUE_BYTES + last, "after one cached value was compared");

    is_int(read_first(store, "live/changed"), 0, "another one");
    rewrite("live/changed");
    change_mode("live/changed", 0600);
    log_text();
    is_int(read_last(store, "live/changed"), -ESTALE, "its mode and its bytes change: the end is not read");
    ok(strstr(log_text(), "live/changed"), "the log names it");
    is_int(read_first(store, "live/changed"), -ESTALE, "the beginning is not read either any more");
    is_int(store_where(store, end.file, 0, &(enum tier_name){0}), 0, "the other one is cached");
    is_int(store_where(store, dataset_file(&d, "live/changed"), 0, &(enum tier_name){0}), -ENOENT, "this is not");

    is_int(read_first(store, "live/cached"), 0, "a small file");
    rewrite("live/cached");
    change_mode("live/cached", 0600);
    is_int(read_first(store, "live/cached"), 0, "is cached as a whole: its bytes are as they were");
    store_close(store);
}

/* --- when a store is opened again --- */

static void test_warm(void)
{
    struct store *store = dataset_store(&d, 0, 64 * MIB, NULL, false);
    is_int(read_first(store, "warm/same"), 0, "a file on the SSD");
    is_int(read_first(store, "warm/changed"), 0, "another one");
    is_int(read_first(store, "warm/large"), 0, "so that the segment is not rewritten without it: a large one");
    store_close(store);
    change_mode("warm/same", 0600);
    change_mode("warm/changed", 0600);
    rewrite("warm/changed");
    dataset_scan_again(&d);

    store = dataset_store(&d, 0, 64 * MIB, NULL, true);
    is_uint(stats_of(store).tier[TIER_SSD].parts, 3, "opened again after the modes have changed: all are there");
    enum place place = PLACES;
    struct span span = first_bytes("warm/same");
    is_int(read_check(store, &d, &span, &place), 0, "the unchanged one is read");
    is_uint(source_bytes(store), dataset_size(&d, span.file), "after its value was compared");
    is_int(read_first(store, "warm/same"), 0, "again");
    is_uint(source_bytes(store), dataset_size(&d, span.file), "without another comparison");
    log_text();
    is_int(read_first(store, "warm/changed"), -ESTALE, "the changed one is not");
    ok(strstr(log_text(), "warm/changed"), "the log names it");
    is_int(read_first(store, "warm/changed"), -ESTALE, "nor later");
    is_uint(stats_of(store).tier[TIER_SSD].parts, 2, "its data is dropped");
    store_close(store);

    store = dataset_store(&d, 0, 64 * MIB, NULL, true);
    is_int(read_first(store, "warm/changed"), -EBADMSG, "the next store has the new bytes");
    is_uint(stats_of(store).tier[TIER_SSD].parts, 3, "and caches them");
    store_close(store);
}

static void test_ssd_hangs(void)
{
    faults_set("");
    struct store *store = dataset_store(&d, 0, 64 * MIB, "on=ssd,file=FILE", false);
    is_int(read_first(store, "hang/same"), 0, "a file on the SSD");
    store_close(store);
    change_mode("hang/same", 0600);
    dataset_scan_again(&d);

    faults_set("hang");
    store = dataset_store(&d, 0, 64 * MIB, "on=ssd,file=FILE", true);
    clock_run();
    struct span span = first_bytes("hang/same");
    enum place place = PLACES;
    is_int(read_check(store, &d, &span, &place), 0, "while the SSD hangs, a file in doubt is read");
    ok(place == PLACE_SOURCE, "from the source");
    faults_set("");
    for (int i = 0; place != PLACE_SSD; i++) {
        if (read_check(store, &d, &span, &place))
            fail("a read while the SSD begins to answer");
        wait_step(i, "the SSD is used again");
    }
    pass("when it answers, it is used again");
    clock_stand();
    store_close(store);
}

static void test_too_many(void)
{
    struct store *store = dataset_store(&d, 0, 64 * MIB, NULL, false);
    is_int(read_first(store, "warm/large"), 0, "a file on the SSD");
    store_close(store);
    char folder[300];
    snprintf(folder, sizeof folder, "%s", test_path("ssd"));
    const struct distrusted one = {.version = catalog_file_version(d.catalog, 0)};
    for (int i = 0; i < DISTRUST_MOST - 1; i++)
        distrust_add(folder, &one);
    store = dataset_store(&d, 0, 64 * MIB, NULL, true);
    is_uint(stats_of(store).tier[TIER_SSD].parts, 1, "many versions are distrusted: others are used");
    store_close(store);
    if (truncate(test_path("ssd/distrusted"), 25) < 0)
        bail_out("truncate: %s", strerror(errno));
    for (int i = 0; i < DISTRUST_MOST + 10; i++)
        distrust_add(folder, &one);
    struct stat st;
    is_int(stat(test_path("ssd/distrusted"), &st), 0, "the list is there");
    is_int(st.st_size, DISTRUST_MOST * (int64_t)sizeof one, "and is bounded; a torn end was overwritten");
    store = dataset_store(&d, 0, 64 * MIB, NULL, true);
    is_uint(stats_of(store).tier[TIER_SSD].parts, 0, "with too many nothing is used");
    ok(stat(test_path("ssd/distrusted"), &st) < 0, "and the list begins again");
    store_close(store);
}

/* --- another node says that a file has changed --- */

static bool keeps_nothing(void *user, uint32_t file, uint64_t offset)
{
    (void)user, (void)file, (void)offset;
    return false;
}

static int fetch_stale(void *user, struct store_read *read)
{
    store_fetched(user, read, -ESTALE);
    return -EINPROGRESS;
}

static void test_told(void)
{
    struct store *store = dataset_store(&d, 64 * MIB, 0, NULL, false);
    const struct store_peers peers = {.user = store, .keeps = keeps_nothing, .fetch = fetch_stale};
    store_set_peers(store, &peers);
    is_int(read_first(store, "told/same"), 0, "the owner says that a file has changed: it has not for this node");
    change_mode("told/excused", 0600);
    is_int(read_first(store, "told/excused"), -ESTALE, "for this node its mode has changed: it is not read");
    store_close(store);
}

int main(void)
{
    static const char *const large[] = {"live/same", "live/changed"};
    static const char *const small[] = {"live/cached", "warm/same", "warm/changed",
                                        "hang/same",   "told/same", "told/excused"};
    log_to_file();
    clock_stand();
    dataset_begin(&d);
    for (size_t i = 0; i < sizeof large / sizeof *large; i++)
        dataset_add(&d, large[i], 9 * MIB + 1234);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        dataset_add(&d, small[i], 50000);
    dataset_add(&d, "warm/large", PIECE_BYTES);
    dataset_scan(&d);
    test_live();
    test_warm();
    test_ssd_hangs();
    test_too_many();
    test_told();
    dataset_end(&d);
    return done_testing();
}
