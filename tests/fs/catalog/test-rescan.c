/* fs/catalog/scan.h: what the next scan takes over, and what happens when something is in the way. */
#include "tests/fs/catalog/scanning.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static ino_t inode_of(const char *name)
{
    struct stat st;
    return stat(name, &st) ? 0 : st.st_ino;
}

/* The first digest, and the inode of the catalog's file. */
struct before {
    struct digest digest;
    ino_t file;
};

static struct before scan_twice(void)
{
    struct scan_progress found;
    struct catalog *c = scanning_run(RESCAN_AUTO, &found);
    struct before before = {scanning_digest(c), inode_of(scanning_path)};
    uint64_t scanned = catalog_scanned(c);
    is_uint(found.reused, 0, "the first scan takes nothing over");
    catalog_close(c);

    c = scanning_run(RESCAN_AUTO, &found);
    is_uint(found.reused, 0, "nor the next: all changed within two seconds before the first");
    ok(same_digest(scanning_digest(c), before.digest), "the digest is the same");
    ok(inode_of(scanning_path) == before.file, "and so is the file");
    ok(catalog_scanned(c) > scanned, "but for its time");
    catalog_close(c);
    return before;
}

static void scan_unchanged(const struct before *before)
{
    struct scan_progress found;
    scanning_settle();
    catalog_close(scanning_run(RESCAN_AUTO, NULL));
    uint64_t scanned = clock_realtime();
    struct catalog *c = scanning_run(RESCAN_AUTO, &found);
    is_uint(found.reused, 21, "later everything is taken over");
    is_uint(found.files, 100, "and counted");
    is_uint(found.bytes, 200, "in bytes too");
    ok(same_digest(scanning_digest(c), before->digest) && inode_of(scanning_path) == before->file,
       "into the same file");
    ok(catalog_scanned(c) >= scanned, "whose time is new");
    catalog_close(c);
}

static struct digest scan_changed(const struct before *before)
{
    struct scan_progress found;
    source_add(scanning_root, "c3/sub/new", 7);
    unlink(test_path("incremental/c4/2"));
    rename(test_path("incremental/c5"), test_path("incremental/c5b"));
    struct catalog *c = scanning_run(RESCAN_AUTO, &found);
    is_uint(found.reused, 16, "after changes in three directories and a renamed tree the rest is taken over");
    struct digest changed = scanning_digest(c);
    ok(!same_digest(changed, before->digest), "the digest changed");
    ok(inode_of(scanning_path) != before->file, "and the file");
    ok(source_find(c, "c3/sub/new") && !source_find(c, "c4/2") && !source_find(c, "c5") && source_find(c, "c5b/sub/1"),
       "the changes are there");
    catalog_close(c);
    c = scanning_run(RESCAN_ALWAYS, &found);
    is_uint(found.reused, 0, "a full scan takes nothing over");
    ok(same_digest(scanning_digest(c), changed), "and finds the same");
    catalog_close(c);
    return changed;
}

static void test_incremental(void)
{
    struct scan_progress found;
    scanning_begin("incremental");
    scanning_add_classes();
    struct before before = scan_twice();
    scan_unchanged(&before);
    struct digest changed = scan_changed(&before);

    source_add(scanning_root, "c0/unseen", 1);
    struct catalog *c = scanning_run(RESCAN_NEVER, &found);
    ok(!source_find(c, "c0/unseen") && same_digest(scanning_digest(c), changed), "without a scan nothing is seen");
    is_uint(found.files, 100, "and what is kept is counted");
    catalog_close(c);
}

/* Two directories of equal mtime change places: only the ctime tells. */
static void test_swapped(void)
{
    scanning_begin("swapped");
    source_add(scanning_root, "a/x", 1);
    source_add(scanning_root, "b/y", 1);
    scanning_settle();
    source_age(scanning_root, "a", 1000);
    source_age(scanning_root, "b", 1000);
    catalog_close(scanning_run(RESCAN_AUTO, NULL));
    rename(test_path("swapped/a"), test_path("swapped/t"));
    rename(test_path("swapped/b"), test_path("swapped/a"));
    rename(test_path("swapped/t"), test_path("swapped/b"));
    struct catalog *c = scanning_run(RESCAN_AUTO, NULL);
    ok(source_find(c, "a/y") && source_find(c, "b/x"), "directories that changed places are seen");
    catalog_close(c);
}

static void test_chmod(void)
{
    scanning_begin("chmod");
    source_add(scanning_root, "a/b/x", 1);
    struct catalog *c = scanning_run(RESCAN_AUTO, NULL);
    struct digest before = scanning_digest(c);
    catalog_close(c);
    chmod(test_path("chmod/a/b"), 0700);
    c = scanning_run(RESCAN_AUTO, NULL);
    struct stat st;
    catalog_stat(c, source_find(c, "a/b"), &st);
    is_uint(st.st_mode & 07777, 0700, "a directory's mode is seen");
    ok(!same_digest(before, scanning_digest(c)), "and part of the digest");
    catalog_close(c);
}

/* ---- what is in the way ---- */

static void test_damaged(void)
{
    scanning_begin("damaged");
    source_add(scanning_root, "x", 1);
    catalog_close(scanning_run(RESCAN_AUTO, NULL));
    if (truncate(scanning_path, 300))
        bail_out("truncate: %s", strerror(errno));
    int log = scanning_log();
    struct catalog *c = scanning_run(RESCAN_NEVER, NULL);
    ok(source_find(c, "x"), "a damaged catalog is built anew, even if none should be");
    ok(scanning_log_has(log, "damaged"), "and the log says so");
    catalog_close(c);
    scanning_log_end(log);
}

static int stop(void *user, const struct scan_progress *now)
{
    (void)now;
    ++*(int *)user;
    return 1;
}

static int count(void *user, const struct scan_progress *now)
{
    struct scan_progress *last = user;
    ok(now->files >= last->files && now->directories >= last->directories, "progress goes forward");
    *last = *now;
    return 0;
}

static void test_progress(void)
{
    scanning_begin("progress");
    scanning_add_classes();
    int calls = 0;
    struct catalog *c;
    struct scan_options options = {.progress = stop, .user = &calls};
    is_int(source_scan(scanning_root, scanning_path, &options, &c, NULL), -ECANCELED, "a scan that is stopped");
    is_int(calls, 1, "is stopped at once");
    ok(access(scanning_path, F_OK) != 0 && !c, "and leaves nothing");
    struct scan_progress last = {0};
    options = (struct scan_options){.progress = count, .user = &last, .threads = 2};
    is_int(source_scan(scanning_root, scanning_path, &options, &c, NULL), 0, "one that goes on");
    is_uint(last.files, 100, "reports all in the end");
    catalog_close(c);
    calls = 0;
    options = (struct scan_options){.progress = stop, .user = &calls, .rescan = RESCAN_NEVER};
    is_int(source_scan(scanning_root, scanning_path, &options, &c, NULL), -ECANCELED,
           "without a scan it can be stopped as well");
}

static void test_cannot_write(void)
{
    scanning_begin("unwritable");
    source_add(scanning_root, "x", 1);
    struct catalog *c;
    snprintf(scanning_path, sizeof scanning_path, "%s", test_path("none/catalog"));
    is_int(source_scan(scanning_root, scanning_path, NULL, &c, NULL), -ENOENT, "a folder that is not there");
    snprintf(scanning_path, sizeof scanning_path, "%s", test_path("unwritable.catalog"));
    CLEANUP_CLOSE int other = open(test_path("unwritable.catalog.new"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    flock(other, LOCK_EX);
    is_int(source_scan(scanning_root, scanning_path, NULL, &c, NULL), -EBUSY, "somebody else is writing");
    flock(other, LOCK_UN);
    if (file_write_all(other, "left by a scan that was killed", 30))
        bail_out("write: %s", strerror(errno));
    is_int(source_scan(scanning_root, scanning_path, NULL, &c, NULL), 0, "what a killed scan left is in nobody's way");
    catalog_close(c);
    ok(access(test_path("unwritable.catalog.new"), F_OK) != 0, "and goes away");
}

/* Killed at any moment, a scan leaves the old catalog or the new. */
static void test_killed(void)
{
    scanning_begin("killed");
    scanning_add_classes();
    struct catalog *c = scanning_run(RESCAN_AUTO, NULL);
    struct digest before = scanning_digest(c);
    catalog_close(c);
    source_add(scanning_root, "c0/new", 1);
    unsigned old = 0, new = 0, other = 0;
    for (int round = 0; round < 60; round++) {
        pid_t child = fork();
        if (child == 0) {
            scanning_run(RESCAN_ALWAYS, NULL);
            unlink(test_path("killed/c0/new"));
            _exit(0);
        }
        nanosleep(&(struct timespec){.tv_nsec = round * 100000}, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        if (catalog_open(scanning_path, &c)) {
            other++;
            continue;
        }
        struct digest now = scanning_digest(c);
        old += same_digest(now, before);
        new += !same_digest(now, before);
        catalog_close(c);
    }
    diag("%u times the old, %u times the new", old, new);
    is_uint(other, 0, "a catalog is there after every kill");
}

/* Files come and go during scans: whatever is found is sound, and the last scan sees the end. */
static void test_moving(void)
{
    scanning_begin("moving");
    scanning_add_classes();
    pid_t child = fork();
    if (child == 0) {
        for (unsigned i = 0;; i++) {
            char name[300], other[300];
            snprintf(name, sizeof name, "%s/c%u/sub", scanning_root, i % 10);
            snprintf(other, sizeof other, "%s/c%u/bus", scanning_root, i % 10);
            rename(name, other);
            snprintf(name, sizeof name, "%s/c%u/t%u", scanning_root, i % 7, i % 13);
            close(open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
            snprintf(name, sizeof name, "%s/c%u/t%u", scanning_root, i % 7, (i + 5) % 13);
            unlink(name);
            snprintf(name, sizeof name, "%s/c%u/sub", scanning_root, i % 10);
            rename(other, name);
        }
    }
    unsigned failed = 0;
    for (int i = 0; i < 200; i++) {
        struct catalog *c;
        failed += source_scan(scanning_root, scanning_path, NULL, &c, NULL) != 0;
        catalog_close(c);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    is_uint(failed, 0, "200 scans of a source that moves");
    struct catalog *c = scanning_run(RESCAN_AUTO, NULL);
    struct digest last = scanning_digest(c);
    catalog_close(c);
    c = scanning_run(RESCAN_ALWAYS, NULL);
    ok(same_digest(last, scanning_digest(c)), "end with what a full scan finds");
    catalog_close(c);
}

int main(void)
{
    test_incremental();
    test_swapped();
    test_chmod();
    test_damaged();
    test_progress();
    test_cannot_write();
    test_killed();
    test_moving();
    return done_testing();
}
