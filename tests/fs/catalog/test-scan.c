/* fs/catalog/scan.h: what a scan finds, what the next one takes over, and what happens when something is in the way. */
#include "fs/base/log.h"
#include "tests/fs/catalog/source.h"

#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char root[256], path[256]; /* of the source and the catalog of the test at hand */

static void begin(const char *name)
{
    snprintf(root, sizeof root, "%s", test_path("%s", name));
    snprintf(path, sizeof path, "%s", test_path("%s.catalog", name));
    source_add(root, "", 0);
    diag("%s", name);
}

static struct digest digest_of(const struct catalog *c)
{
    return *catalog_digest(c);
}

static bool same(struct digest a, struct digest b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* A scan whose result is looked at by the caller. */
static struct catalog *rescan(enum rescan how, struct scan_progress *result)
{
    struct catalog *c;
    struct scan_options options = {.rescan = how};
    int error = source_scan(root, path, &options, &c, result);
    if (error)
        bail_out("scan %s: %s", root, strerror(-error));
    return c;
}

static ino_t inode_of(const char *name)
{
    struct stat st;
    return stat(name, &st) ? 0 : st.st_ino;
}

/* Until the clock is far enough from what was made before that a scan trusts the time stamps. */
static void settle(void)
{
    uint64_t until = clock_realtime() + 2100000000u;
    while (clock_realtime() < until)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}

static int log_begin(void)
{
    int fd = memfd_create("log", MFD_CLOEXEC);
    if (fd < 0)
        bail_out("memfd_create: %s", strerror(errno));
    log_open("test", fd, false);
    return fd;
}

static void log_end(int fd)
{
    log_open("test", STDERR_FILENO, false);
    close(fd);
}

static bool log_has(int fd, const char *text)
{
    CLEANUP_STR struct str log = STR_INIT;
    lseek(fd, 0, SEEK_SET);
    return file_read_fd(fd, 1 << 20, &log) == 0 && log.data && strstr(log.data, text);
}

/* Paths too long for what cleans up after the test. */
static void remove_source(void)
{
    int error = dir_remove_tree(AT_FDCWD, root);
    if (error)
        bail_out("remove %s: %s", root, strerror(-error));
}

/* ---- what is found ---- */

static void make_special(const char *name, mode_t type)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CLEANUP_STR struct str whole = STR_INIT;
    str_addf(&whole, "%s/%s", root, name);
    if (type == S_IFIFO && mkfifo(whole.data, 0600))
        bail_out("mkfifo: %s", strerror(errno));
    if (type != S_IFSOCK)
        return;
    CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", whole.data);
    if (bind(fd, (struct sockaddr *)&address, sizeof address))
        bail_out("bind: %s", strerror(errno));
}

static void test_kinds(void)
{
    begin("kinds");
    source_add(root, "d/file", 5);
    source_add(root, ".dealfs/inside", 1);
    source_add(root, "d/.dealfs", 1);
    make_special("d/fifo", S_IFIFO);
    make_special("socket", S_IFSOCK);
    source_link(root, "to-file", "d/file");
    source_link(root, "outside", "/proc/self/stat");
    source_link(root, "to-directory", "d");
    source_link(root, "dangling", "none");
    source_link(root, "to-fifo", "d/fifo");
    char old[300], new[300];
    snprintf(old, sizeof old, "%s/d/file", root);
    snprintf(new, sizeof new, "%s/hard", root);
    if (link(old, new))
        bail_out("link: %s", strerror(errno));
    struct scan_progress found;
    struct catalog *c = rescan(RESCAN_AUTO, &found);
    const struct catalog_notes *notes = catalog_notes(c);
    is_uint(catalog_files(c), 3, "files: hard links are files, and so is a .dealfs below");
    is_uint(catalog_links(c), 5, "symlinks");
    is_uint(catalog_directories(c), 2, "directories");
    is_uint(notes->specials, 2, "specials are counted");
    is_uint(notes->links_to_files, 2, "symlinks to files are counted, outside too");
    is_uint(notes->hidden, 1, "a .dealfs at the root is hidden");
    is_uint(source_find(c, ".dealfs"), 0, "and not there");
    ok(source_find(c, "d/.dealfs") && source_find(c, "hard"), "the others are");
    is_uint(found.files, 3, "the result counts files");
    is_uint(found.directories, 2, "and directories");
    is_uint(found.bytes, 11, "and bytes");
    is_uint(found.reused, 0, "nothing was there to take over");
    catalog_close(c);
    settle();
    catalog_close(rescan(RESCAN_AUTO, NULL));
    c = rescan(RESCAN_AUTO, &found);
    is_uint(found.reused, 2, "all is taken over");
    ok(catalog_notes(c)->specials == 2 && catalog_notes(c)->links_to_files == 2 && catalog_notes(c)->hidden == 1,
       "with what was noted");
    source_add(root, "d/new", 1); /* of two directories one is taken over */
    catalog_close(c);
    c = rescan(RESCAN_AUTO, &found);
    is_uint(found.reused, 1, "one is taken over");
    ok(catalog_notes(c)->specials == 2 && catalog_notes(c)->links_to_files == 2 && catalog_notes(c)->hidden == 1,
       "with what was noted");
    catalog_close(c);
}

static void test_empty(void)
{
    begin("empty");
    struct catalog *c = rescan(RESCAN_AUTO, NULL);
    ok(catalog_files(c) == 0 && catalog_inodes(c) == 1 && catalog_bytes(c) == 0, "an empty source");
    catalog_close(c);
}

/* A comb: at each level a file, a side directory and the way down; its paths are far longer than PATH_MAX. */
enum { LEVELS = 220, NAME = 250 };

static int comb_down(int at, int level)
{
    char name[NAME + 1];
    memset(name, 'd', NAME);
    name[NAME] = '\0';
    if (mkdirat(at, "side", 0755) || mkdirat(at, name, 0755))
        bail_out("mkdir at level %d: %s", level, strerror(errno));
    CLEANUP_CLOSE int side = openat(at, "side/x", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || side < 0)
        bail_out("level %d: %s", level, strerror(errno));
    return fd;
}

static bool same_below(const struct catalog *c)
{
    uint64_t ino = CATALOG_ROOT;
    char name[NAME + 1];
    memset(name, 'd', NAME);
    for (int level = 0; level < LEVELS; level++) {
        uint64_t side;
        if (catalog_lookup(c, ino, "side", 4, &side) || catalog_lookup(c, side, "x", 1, &side) ||
            catalog_lookup(c, ino, name, NAME, &ino))
            return false;
    }
    return true;
}

static void test_deep(void)
{
    begin("deep");
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int level = 0; level < LEVELS; level++) {
        int down = comb_down(fd, level);
        close(fd);
        fd = down;
    }
    close(fd);
    struct catalog *c = rescan(RESCAN_AUTO, NULL);
    is_uint(catalog_files(c), LEVELS, "a source %d levels deep", LEVELS);
    ok(same_below(c), "is there down to its end");
    struct digest before = digest_of(c);
    size_t longest = 0;
    for (uint32_t f = 0; f < catalog_files(c); f++) {
        size_t n = strlen(source_path(c, catalog_file_ino(c, f)));
        longest = n > longest ? n : longest;
    }
    is_uint(longest, (LEVELS - 1) * (NAME + 1) + strlen("side/x"), "the longest path can be told");
    catalog_close(c);
    struct rlimit limit, few;
    getrlimit(RLIMIT_NOFILE, &limit);
    few = limit;
    few.rlim_cur = 130; /* no directory can be held open for its children */
    setrlimit(RLIMIT_NOFILE, &few);
    c = rescan(RESCAN_ALWAYS, NULL);
    setrlimit(RLIMIT_NOFILE, &limit);
    ok(same(digest_of(c), before), "few descriptors make no difference");
    catalog_close(c);
    remove_source();
}

/* Deeper than any path that a catalog takes: cut off there, said, and no failure. */
static void test_too_deep(void)
{
    begin("too-deep");
    int log = log_begin();
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int level = 0; level < CATALOG_PATH_MAX / NAME + 10; level++) {
        int down = comb_down(fd, level);
        close(fd);
        fd = down;
    }
    close(fd);
    struct catalog *c = rescan(RESCAN_AUTO, NULL);
    bool all = true;
    for (uint64_t ino = CATALOG_ROOT; ino <= catalog_inodes(c); ino++)
        all &= strcmp(source_path(c, ino), "?") != 0;
    ok(all, "every path of the catalog can be told");
    ok(catalog_notes(c)->unreadable > 0 && log_has(log, "File name too long"),
       "what is too deep is counted and logged");
    catalog_close(c);
    remove_source();
    log_end(log);
}

static void test_wide(void)
{
    begin("wide");
    char name[64];
    enum { FILES = 20000, DIRECTORIES = 3000 };
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "big/prefix_%05d", i * 7919 % FILES);
        source_add(root, name, 0);
    }
    for (int i = 0; i < DIRECTORIES; i++) {
        snprintf(name, sizeof name, "dirs/%04d/x", i);
        source_add(root, name, 0);
    }
    struct catalog *c = rescan(RESCAN_AUTO, NULL);
    is_uint(catalog_files(c), FILES + DIRECTORIES, "a directory of many files and one of many directories");
    uint32_t first, count;
    catalog_directory_files(c, source_find(c, "big"), &first, &count);
    bool sorted = count == FILES;
    for (uint32_t i = 0; sorted && i < count; i++) {
        snprintf(name, sizeof name, "big/prefix_%05u", i);
        sorted = strcmp(source_path(c, catalog_file_ino(c, first + i)), name) == 0;
    }
    ok(sorted, "are sorted");
    catalog_close(c);
}

/* ---- what cannot be read; as another user, for root reads everything ---- */

static void scan_unreadable(void)
{
    int log = log_begin();
    struct catalog *c = rescan(RESCAN_AUTO, NULL);
    is_uint(catalog_notes(c)->unreadable, 2, "two directories cannot be read");
    ok(source_find(c, "closed") && !source_find(c, "closed/x"), "one is there, empty");
    ok(log_has(log, "scan closed: Permission denied"), "and in the log by name");
    ok(source_find(c, "names") && !source_find(c, "names/x"), "another shows names only");
    ok(source_find(c, "open/x"), "the rest is there");
    catalog_close(c);
    log_end(log);
}

static void test_unreadable(void)
{
    begin("unreadable");
    source_add(root, "closed/x", 1);
    source_add(root, "names/x", 1);
    source_add(root, "open/x", 1);
    chmod(test_path("unreadable/closed"), 0);
    chmod(test_path("unreadable/names"), 0444);
    chmod(test_directory(), 0777);
    if (geteuid() == 0 && seteuid(65534))
        bail_out("seteuid: %s", strerror(errno));
    scan_unreadable();
    if (getuid() == 0 && seteuid(0))
        bail_out("seteuid: %s", strerror(errno));
    chmod(test_path("unreadable/closed"), 0755);
    chmod(test_path("unreadable/names"), 0755);
    struct catalog *c = rescan(RESCAN_AUTO, NULL);
    ok(source_find(c, "closed/x") && source_find(c, "names/x"), "when they can be read they are, at the next scan");
    is_uint(catalog_notes(c)->unreadable, 0, "and nothing is noted");
    catalog_close(c);
}

static void test_root_unreadable(void)
{
    begin("root");
    source_add(root, "x", 1);
    struct catalog *c;
    struct str why = STR_INIT;
    int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    is_int(scan_source(fd, path, NULL, &c, &why, NULL), 0, "a source opened O_PATH");
    catalog_close(c);
    close(fd);
    fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    is_int(scan_source(fd, path, NULL, &c, &why, NULL), -ENOTDIR, "a source that is none");
    ok(why.length > 0, "is refused: %s", why.data);
    close(fd);
    c = rescan(RESCAN_NEVER, NULL);
    is_uint(catalog_files(c), 1, "the catalog of before is still there");
    catalog_close(c);
    str_fini(&why);
}

/* ---- what is taken over ---- */

static void make_classes(void)
{
    char name[64];
    for (int d = 0; d < 10; d++)
        for (int f = 0; f < 5; f++) {
            snprintf(name, sizeof name, "c%d/sub/%d", d, f);
            source_add(root, name, f);
            snprintf(name, sizeof name, "c%d/%d", d, f);
            source_add(root, name, f);
        }
}

static void test_incremental(void)
{
    begin("incremental");
    make_classes();
    struct scan_progress found;
    struct catalog *c = rescan(RESCAN_AUTO, &found);
    struct digest first = digest_of(c);
    ino_t file = inode_of(path);
    uint64_t scanned = catalog_scanned(c);
    is_uint(found.reused, 0, "the first scan takes nothing over");
    catalog_close(c);

    c = rescan(RESCAN_AUTO, &found);
    is_uint(found.reused, 0, "nor the next: all changed within two seconds before the first");
    ok(same(digest_of(c), first), "the digest is the same");
    ok(inode_of(path) == file, "and so is the file");
    ok(catalog_scanned(c) > scanned, "but for its time");
    catalog_close(c);

    settle();
    catalog_close(rescan(RESCAN_AUTO, NULL));
    scanned = clock_realtime();
    c = rescan(RESCAN_AUTO, &found);
    is_uint(found.reused, 21, "later everything is taken over");
    is_uint(found.files, 100, "and counted");
    is_uint(found.bytes, 200, "in bytes too");
    ok(same(digest_of(c), first) && inode_of(path) == file, "into the same file");
    ok(catalog_scanned(c) >= scanned, "whose time is new");
    catalog_close(c);

    source_add(root, "c3/sub/new", 7);
    unlink(test_path("incremental/c4/2"));
    rename(test_path("incremental/c5"), test_path("incremental/c5b"));
    c = rescan(RESCAN_AUTO, &found);
    is_uint(found.reused, 16, "after changes in three directories and a renamed tree the rest is taken over");
    struct digest changed = digest_of(c);
    ok(!same(changed, first), "the digest changed");
    ok(inode_of(path) != file, "and the file");
    ok(source_find(c, "c3/sub/new") && !source_find(c, "c4/2") && !source_find(c, "c5") && source_find(c, "c5b/sub/1"),
       "the changes are there");
    catalog_close(c);
    c = rescan(RESCAN_ALWAYS, &found);
    is_uint(found.reused, 0, "a full scan takes nothing over");
    ok(same(digest_of(c), changed), "and finds the same");
    catalog_close(c);

    source_add(root, "c0/unseen", 1);
    c = rescan(RESCAN_NEVER, &found);
    ok(!source_find(c, "c0/unseen") && same(digest_of(c), changed), "without a scan nothing is seen");
    is_uint(found.files, 100, "and what is kept is counted");
    catalog_close(c);
}

/* Two directories of equal mtime change places: only the ctime tells. */
static void test_swapped(void)
{
    begin("swapped");
    source_add(root, "a/x", 1);
    source_add(root, "b/y", 1);
    settle();
    source_age(root, "a", 1000);
    source_age(root, "b", 1000);
    catalog_close(rescan(RESCAN_AUTO, NULL));
    rename(test_path("swapped/a"), test_path("swapped/t"));
    rename(test_path("swapped/b"), test_path("swapped/a"));
    rename(test_path("swapped/t"), test_path("swapped/b"));
    struct catalog *c = rescan(RESCAN_AUTO, NULL);
    ok(source_find(c, "a/y") && source_find(c, "b/x"), "directories that changed places are seen");
    catalog_close(c);
}

static void test_chmod(void)
{
    begin("chmod");
    source_add(root, "a/b/x", 1);
    struct catalog *c = rescan(RESCAN_AUTO, NULL);
    struct digest before = digest_of(c);
    catalog_close(c);
    chmod(test_path("chmod/a/b"), 0700);
    c = rescan(RESCAN_AUTO, NULL);
    struct stat st;
    catalog_stat(c, source_find(c, "a/b"), &st);
    is_uint(st.st_mode & 07777, 0700, "a directory's mode is seen");
    ok(!same(before, digest_of(c)), "and part of the digest");
    catalog_close(c);
}

/* ---- what is in the way ---- */

static void test_damaged(void)
{
    begin("damaged");
    source_add(root, "x", 1);
    catalog_close(rescan(RESCAN_AUTO, NULL));
    if (truncate(path, 300))
        bail_out("truncate: %s", strerror(errno));
    int log = log_begin();
    struct catalog *c = rescan(RESCAN_NEVER, NULL);
    ok(source_find(c, "x"), "a damaged catalog is built anew, even if none should be");
    ok(log_has(log, "damaged"), "and the log says so");
    catalog_close(c);
    log_end(log);
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
    begin("progress");
    make_classes();
    int calls = 0;
    struct catalog *c;
    struct scan_options options = {.progress = stop, .user = &calls};
    is_int(source_scan(root, path, &options, &c, NULL), -ECANCELED, "a scan that is stopped");
    is_int(calls, 1, "is stopped at once");
    ok(access(path, F_OK) != 0 && !c, "and leaves nothing");
    struct scan_progress last = {0};
    options = (struct scan_options){.progress = count, .user = &last, .threads = 2};
    is_int(source_scan(root, path, &options, &c, NULL), 0, "one that goes on");
    is_uint(last.files, 100, "reports all in the end");
    catalog_close(c);
    calls = 0;
    options = (struct scan_options){.progress = stop, .user = &calls, .rescan = RESCAN_NEVER};
    is_int(source_scan(root, path, &options, &c, NULL), -ECANCELED, "without a scan it can be stopped as well");
}

static void test_cannot_write(void)
{
    begin("unwritable");
    source_add(root, "x", 1);
    struct catalog *c;
    snprintf(path, sizeof path, "%s", test_path("none/catalog"));
    is_int(source_scan(root, path, NULL, &c, NULL), -ENOENT, "a folder that is not there");
    snprintf(path, sizeof path, "%s", test_path("unwritable.catalog"));
    CLEANUP_CLOSE int other = open(test_path("unwritable.catalog.new"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    flock(other, LOCK_EX);
    is_int(source_scan(root, path, NULL, &c, NULL), -EBUSY, "somebody else is writing");
    flock(other, LOCK_UN);
    if (file_write_all(other, "left by a scan that was killed", 30))
        bail_out("write: %s", strerror(errno));
    is_int(source_scan(root, path, NULL, &c, NULL), 0, "what a killed scan left is in nobody's way");
    catalog_close(c);
    ok(access(test_path("unwritable.catalog.new"), F_OK) != 0, "and goes away");
}

/* Killed at any moment, a scan leaves the old catalog or the new. */
static void test_killed(void)
{
    begin("killed");
    make_classes();
    struct catalog *c = rescan(RESCAN_AUTO, NULL);
    struct digest before = digest_of(c);
    catalog_close(c);
    source_add(root, "c0/new", 1);
    unsigned old = 0, new = 0, other = 0;
    for (int round = 0; round < 60; round++) {
        pid_t child = fork();
        if (child == 0) {
            rescan(RESCAN_ALWAYS, NULL);
            unlink(test_path("killed/c0/new"));
            _exit(0);
        }
        nanosleep(&(struct timespec){.tv_nsec = round * 100000}, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        if (catalog_open(path, &c)) {
            other++;
            continue;
        }
        struct digest now = digest_of(c);
        old += same(now, before);
        new += !same(now, before);
        catalog_close(c);
    }
    diag("%u times the old, %u times the new", old, new);
    is_uint(other, 0, "a catalog is there after every kill");
}

/* Files come and go during scans: whatever is found is sound, and the last scan sees the end. */
static void test_moving(void)
{
    begin("moving");
    make_classes();
    pid_t child = fork();
    if (child == 0) {
        for (unsigned i = 0;; i++) {
            char name[300], other[300];
            snprintf(name, sizeof name, "%s/c%u/sub", root, i % 10);
            snprintf(other, sizeof other, "%s/c%u/bus", root, i % 10);
            rename(name, other);
            snprintf(name, sizeof name, "%s/c%u/t%u", root, i % 7, i % 13);
            close(open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
            snprintf(name, sizeof name, "%s/c%u/t%u", root, i % 7, (i + 5) % 13);
            unlink(name);
            snprintf(name, sizeof name, "%s/c%u/sub", root, i % 10);
            rename(other, name);
        }
    }
    unsigned failed = 0;
    for (int i = 0; i < 200; i++) {
        struct catalog *c;
        failed += source_scan(root, path, NULL, &c, NULL) != 0;
        catalog_close(c);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    is_uint(failed, 0, "200 scans of a source that moves");
    struct catalog *c = rescan(RESCAN_AUTO, NULL);
    struct digest last = digest_of(c);
    catalog_close(c);
    c = rescan(RESCAN_ALWAYS, NULL);
    ok(same(last, digest_of(c)), "end with what a full scan finds");
    catalog_close(c);
}

int main(void)
{
    test_kinds();
    test_empty();
    test_deep();
    test_too_deep();
    test_wide();
    test_unreadable();
    test_root_unreadable();
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
