/* fs/catalog/scanner.h: what the next scan takes over, and what happens when something is in the way. */
#include "fs/base/clock.h"
#include "tests/fs/catalog/aged.h"
#include "tests/fs/catalog/scanning.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What a client of NFS remembers is told to who does not insist. */
static struct stat remembered;

static void remember(const struct statx *x, int flags, struct statx_timestamp *ctime)
{
    if (x->stx_ino == remembered.st_ino && !(flags & AT_STATX_FORCE_SYNC))
        *ctime = (struct statx_timestamp){.tv_sec = remembered.st_ctim.tv_sec,
                                          .tv_nsec = (uint32_t)remembered.st_ctim.tv_nsec};
}

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
    ok(catalog_scanned(c) > scanned, "except for its time");
    catalog_close(c);
    return before;
}

static void scan_unchanged(const struct before *before)
{
    struct scan_progress found;
    source_settle();
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
    source_settle();
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

/* --- files that were rewritten --- */

/* What a file is known by to those who keep its bytes; `how` the source is looked at. */
static struct digest identity_after(enum rescan how, const char *path)
{
    uint32_t file;
    struct catalog *c = scanning_run(how, NULL);
    catalog_ino_file(c, source_find(c, path), &file);
    struct digest identity = catalog_file_version(c, file);
    catalog_close(c);
    return identity;
}

static void rewrite(const char *path, bool put_back)
{
    CLEANUP_STR struct str whole = STR_INIT;
    struct stat st;
    str_addf(&whole, "%s/%s", scanning_root, path);
    CLEANUP_CLOSE int fd = open(whole.data, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) || pwrite(fd, "new", 3, 0) != 3)
        bail_out("write %s: %s", whole.data, strerror(errno));
    if (put_back && futimens(fd, (struct timespec[2]){st.st_atim, st.st_mtim}))
        bail_out("touch %s: %s", whole.data, strerror(errno));
}

static void test_rewritten(void)
{
    scanning_begin("rewritten");
    scanning_add_classes();
    source_settle();
    struct digest other = identity_after(RESCAN_AUTO, "c2/2"), first = identity_after(RESCAN_AUTO, "c1/1");
    rewrite("c1/1", false);
    ok(same_digest(identity_after(RESCAN_NAMES, "c1/1"), first), "names alone do not say that a file was rewritten");
    struct scan_progress found;
    struct catalog *c = scanning_run(RESCAN_AUTO, &found);
    is_uint(found.rewritten, 1, "a look at each file does");
    is_uint(found.reused, 21, "though no directory has changed");
    struct digest before = scanning_digest(c), versions = *catalog_versions(c);
    catalog_close(c);
    struct digest second = identity_after(RESCAN_NEVER, "c1/1");
    ok(!same_digest(second, first), "and what was kept of it is of another file");

    rewrite("c1/1", true);
    c = scanning_run(RESCAN_AUTO, &found);
    is_uint(found.rewritten, 1, "a file with its size and its mtime put back is seen by its ctime");
    ok(same_digest(scanning_digest(c), before), "though the dataset looks the same");
    ok(!same_digest(*catalog_versions(c), versions), "what was kept is not trusted as a whole");
    catalog_close(c);
    ok(!same_digest(identity_after(RESCAN_NEVER, "c1/1"), second), "nor what was kept of this file");
    ok(same_digest(identity_after(RESCAN_NEVER, "c2/2"), other), "but that of the others");
    source_add(scanning_root, "c1/more", 1);
    rewrite("c1/2", true);
    catalog_close(scanning_run(RESCAN_AUTO, &found));
    is_uint(found.rewritten, 1, "also in a directory that is listed again");
}

/* Where bytes of before may be kept, what is remembered of a file is perhaps what they are of. */
static void test_remembered(void)
{
    struct catalog *c;
    uint32_t file;
    scanning_begin("remembered");
    source_add(scanning_root, "a/x", 3);
    struct digest first = identity_after(RESCAN_AUTO, "a/x");
    if (stat(test_path("remembered/a/x"), &remembered))
        bail_out("stat: %s", strerror(errno));
    rewrite("a/x", true);
    struct digest second = identity_after(RESCAN_AUTO, "a/x");
    ok(!same_digest(second, first), "a file that was rewritten elsewhere is seen at once");
    ok(same_digest(identity_after(RESCAN_ALWAYS, "a/x"), second), "also when nothing is taken over");
    unlink(scanning_path);
    struct scan_options options = {.kept = true};
    if (source_scan(scanning_root, scanning_path, &options, &c, NULL))
        bail_out("scan %s", scanning_root);
    catalog_ino_file(c, source_find(c, "a/x"), &file);
    ok(same_digest(catalog_file_version(c, file), second), "or when the catalog is lost, and bytes may be kept");
    catalog_close(c);
    remembered.st_ino = 0;
}

/* Two nodes look at a part each; the one that scans looks at what they found. */
static struct catalog *scan_looked(int looked, struct scan_progress *found)
{
    struct catalog *c;
    struct scan_options options = {.looked = looked};
    if (source_scan(scanning_root, scanning_path, &options, &c, found))
        bail_out("scan %s", scanning_root);
    return c;
}

static int look_at_portions(void)
{
    CLEANUP_CLOSE int source = open(scanning_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = memfd_create("looked", MFD_CLOEXEC);
    struct scan_options options = {.threads = 4};
    for (unsigned i = 0; i < 2; i++)
        is_int(scan_portion(source, scanning_path, &options, (struct scan_part){i, 2}, fd), 0, "a half is looked at");
    return fd;
}

static void test_portions(void)
{
    struct scan_progress found;
    scanning_begin("portions");
    scanning_add_classes();
    source_settle();
    catalog_close(scanning_run(RESCAN_AUTO, NULL));
    rewrite("c1/1", false);
    rewrite("c8/sub/3", true);
    unlink(test_path("portions/c2/2"));
    source_add(scanning_root, "c3/new", 1);
    CLEANUP_CLOSE int fd = look_at_portions();
    rewrite("c9/4", false); /* too late for this scan */
    struct catalog *c = scan_looked(fd, &found);
    is_uint(found.shared, 97, "all files but three were as before");
    is_uint(found.rewritten, 2, "those that were rewritten are looked at");
    is_uint(catalog_files(c), 100, "with what came and went");
    catalog_close(c);
    c = scan_looked(fd, &found);
    is_uint(found.shared, 0, "of another catalog nothing is believed");
    is_uint(found.rewritten, 1, "and all is looked at");
    catalog_close(c);
    CLEANUP_CLOSE int torn = look_at_portions();
    if (ftruncate(torn, 30))
        bail_out("truncate: %s", strerror(errno));
    c = scan_looked(torn, &found);
    is_uint(found.shared, 0, "nor what is not whole");
    catalog_close(c);
}

/* A node that has seen a link come and go knows a later ctime than the one that scans. */
static void test_portions_differ(void)
{
    struct catalog *c;
    struct stat st;
    char kept[300];
    uint32_t file;
    scanning_begin("differ");
    source_add(scanning_root, "a/x", 3);
    source_settle();
    catalog_close(scanning_run(RESCAN_AUTO, NULL));
    CLEANUP_CLOSE int from = open(scanning_path, O_RDONLY | O_CLOEXEC);
    snprintf(kept, sizeof kept, "%s.kept", scanning_path);
    if (from < 0 || file_copy_atomic(from, kept) || link(test_path("differ/a/x"), test_path("differ-x")))
        bail_out("copy %s: %s", scanning_path, strerror(errno));
    catalog_close(scanning_run(RESCAN_AUTO, NULL));
    unlink(test_path("differ-x"));
    catalog_close(scanning_run(RESCAN_AUTO, NULL));
    CLEANUP_CLOSE int fd = look_at_portions();
    if (rename(kept, scanning_path))
        bail_out("rename %s: %s", kept, strerror(errno));
    c = scan_looked(fd, NULL);
    catalog_ino_file(c, source_find(c, "a/x"), &file);
    struct file_state known = catalog_state(c, file);
    uint32_t object;
    if (state_look(AT_FDCWD, test_path("differ/a/x"), 0, &st, &object))
        bail_out("stat: %s", strerror(errno));
    struct file_state is = state_from(&st, object);
    ok(state_compare(&known, &is) == STATE_SAME, "of a node that knows another ctime nothing is believed");
    catalog_close(c);
}

static void replace_alike(const char *name)
{
    struct stat st;
    const char *path = test_path("attributes/%s", name);
    if (stat(path, &st) || unlink(path))
        bail_out("replace %s: %s", path, strerror(errno));
    source_add(scanning_root, name, st.st_size);
    if (utimensat(AT_FDCWD, path, (struct timespec[2]){st.st_atim, st.st_mtim}, 0))
        bail_out("touch %s: %s", path, strerror(errno));
}

static void test_attributes(void)
{
    struct stat st;
    scanning_begin("attributes");
    source_add(scanning_root, "a/x", 3);
    source_add(scanning_root, "a/y", 3);
    struct digest x = identity_after(RESCAN_AUTO, "a/x"), y = identity_after(RESCAN_AUTO, "a/y");
    chmod(test_path("attributes/a/x"), 0600);
    struct scan_progress found;
    struct catalog *c = scanning_run(RESCAN_AUTO, &found);
    catalog_stat(c, source_find(c, "a/x"), &st);
    ok((st.st_mode & 0777) == 0600 && found.rewritten == 0, "another mode is seen, and is no other file");
    catalog_close(c);
    if (link(test_path("attributes/a/y"), test_path("attributes-y")))
        bail_out("link: %s", strerror(errno));
    c = scanning_run(RESCAN_AUTO, &found);
    is_uint(catalog_notes(c)->linked, 1, "a file with two links is counted");
    catalog_close(c);
    ok(same_digest(identity_after(RESCAN_AUTO, "a/x"), x), "what was kept stays good: after a chmod");
    ok(same_digest(identity_after(RESCAN_AUTO, "a/y"), y), "after a link");
    source_add(scanning_root, "a/y", 3); /* truncated and made longer again */
    source_age(scanning_root, "a/y", 1000);
    ok(!same_digest(identity_after(RESCAN_AUTO, "a/y"), y), "but not after it was written");
    x = identity_after(RESCAN_AUTO, "a/x");
    replace_alike("a/x");
    chmod(test_path("attributes/a/x"), 0640);
    ok(!same_digest(identity_after(RESCAN_AUTO, "a/x"), x),
       "nor after another file with its size and mtime, and another mode, replaced it");
}

static struct digest identity_by_mtime(enum rescan how, const char *path)
{
    struct catalog *c;
    uint32_t file;
    struct scan_options options = {.rescan = how, .ignore_ctime = true};
    if (source_scan(scanning_root, scanning_path, &options, &c, NULL))
        bail_out("scan %s", scanning_root);
    catalog_ino_file(c, source_find(c, path), &file);
    struct digest identity = catalog_file_version(c, file);
    is_int(catalog_state(c, file).ctime, 0, "no ctime is in the catalog");
    catalog_close(c);
    return identity;
}

/* Bytes read while another change could leave the file's time as it is are not trusted later. */
static void test_unsettled(void)
{
    scanning_begin("unsettled");
    source_add(scanning_root, "a/x", 3);
    source_settle();
    source_age(scanning_root, "a/x", (long)(clock_realtime() / 1000000000)); /* as a source with whole seconds has it */
    struct digest fresh = identity_by_mtime(RESCAN_AUTO, "a/x");
    source_settle();
    struct digest settled = identity_by_mtime(RESCAN_NAMES, "a/x");
    ok(!same_digest(fresh, settled), "what changed just before the scan is another file to the next, also by names");
    ok(same_digest(identity_by_mtime(RESCAN_NAMES, "a/x"), settled) &&
           same_digest(identity_by_mtime(RESCAN_AUTO, "a/x"), settled) &&
           same_digest(identity_by_mtime(RESCAN_ALWAYS, "a/x"), settled),
       "and then the same");
    rewrite("a/x", false);
    fresh = identity_after(RESCAN_AUTO, "a/x");
    rewrite("a/x", false);
    ok(!same_digest(identity_after(RESCAN_NAMES, "a/x"), fresh),
       "a file that changed just before the scan is looked at again");
}

static void test_mtime_alone(void)
{
    scanning_begin("mtime");
    source_add(scanning_root, "a/x", 3);
    source_add(scanning_root, "a/future", 3);
    source_age(scanning_root, "a/future", 4000000000);
    struct digest x = identity_by_mtime(RESCAN_AUTO, "a/x"), future = identity_by_mtime(RESCAN_AUTO, "a/future");
    rewrite("a/x", true);
    ok(same_digest(identity_by_mtime(RESCAN_AUTO, "a/x"), x),
       "by the mtime alone a file with its mtime put back is the same");
    ok(same_digest(identity_by_mtime(RESCAN_AUTO, "a/future"), future), "an mtime in the future is one");
    rewrite("a/x", false);
    ok(!same_digest(identity_by_mtime(RESCAN_AUTO, "a/x"), x), "with another mtime it is not");
    ok(!same_digest(identity_after(RESCAN_AUTO, "a/future"), future), "what was kept so is not trusted by ctime");
}

/* --- what is in the way --- */

static void test_damaged(void)
{
    scanning_begin("damaged");
    source_add(scanning_root, "x", 1);
    catalog_close(scanning_run(RESCAN_AUTO, NULL));
    if (truncate(scanning_path, 300))
        bail_out("truncate: %s", strerror(errno));
    int log = scanning_log();
    struct catalog *c = scanning_run(RESCAN_NEVER, NULL);
    ok(source_find(c, "x"), "a damaged catalog is built again, even if none should be");
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
    unsigned failed = 0, scans = getenv("TEST_SANITIZER") ? 50 : 200;
    for (unsigned i = 0; i < scans; i++) {
        struct catalog *c;
        failed += source_scan(scanning_root, scanning_path, NULL, &c, NULL) != 0;
        catalog_close(c);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    is_uint(failed, 0, "%u scans of a source that moves", scans);
    struct catalog *c = scanning_run(RESCAN_AUTO, NULL);
    struct digest last = scanning_digest(c);
    catalog_close(c);
    c = scanning_run(RESCAN_ALWAYS, NULL);
    ok(same_digest(last, scanning_digest(c)), "end with what a full scan finds");
    catalog_close(c);
}

int main(void)
{
    aged.before = remember;
    test_incremental();
    test_swapped();
    test_chmod();
    test_rewritten();
    test_remembered();
    test_portions();
    test_portions_differ();
    test_attributes();
    test_unsettled();
    test_mtime_alone();
    test_damaged();
    test_progress();
    test_cannot_write();
    test_killed();
    test_moving();
    return done_testing();
}
