/* fs/catalog/scanner.h: what a scan finds, and what cannot be read. */
#include "tests/fs/catalog/aged.h"
#include "tests/fs/catalog/scanning.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Paths too long for what cleans up after the test, and too deep for dir_remove_tree(). */
static void remove_source(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        execlp("rm", "rm", "-rf", "--", scanning_root, (char *)NULL);
    waitpid(child, &status, 0);
    if (status)
        bail_out("remove %s: status %d", scanning_root, status);
}

/* --- what is found --- */

static void make_special(const char *name, mode_t type)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CLEANUP_STR struct str whole = STR_INIT;
    str_addf(&whole, "%s/%s", scanning_root, name);
    if (type == S_IFIFO && mkfifo(whole.data, 0600))
        bail_out("mkfifo: %s", strerror(errno));
    if (type != S_IFSOCK)
        return;
    CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", whole.data);
    if (bind(fd, (struct sockaddr *)&address, sizeof address))
        bail_out("bind: %s", strerror(errno));
}

static void make_kinds(void)
{
    scanning_begin("kinds");
    source_add(scanning_root, "d/file", 5);
    source_add(scanning_root, ".dealfs/inside", 1);
    source_add(scanning_root, "d/.dealfs", 1);
    make_special("d/fifo", S_IFIFO);
    make_special("socket", S_IFSOCK);
    source_link(scanning_root, "to-file", "d/file");
    source_link(scanning_root, "outside", "/proc/self/stat");
    source_link(scanning_root, "to-directory", "d");
    source_link(scanning_root, "dangling", "none");
    source_link(scanning_root, "to-fifo", "d/fifo");
    char old[300], new[300];
    snprintf(old, sizeof old, "%s/d/file", scanning_root);
    snprintf(new, sizeof new, "%s/hard", scanning_root);
    if (link(old, new))
        bail_out("link: %s", strerror(errno));
}

static void test_kinds(void)
{
    make_kinds();
    struct scan_progress found;
    struct catalog *c = scanning_run(RESCAN_AUTO, &found);
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
}

static bool are_noted(const struct catalog *c)
{
    const struct catalog_notes *notes = catalog_notes(c);
    return notes->specials == 2 && notes->links_to_files == 2 && notes->hidden == 1;
}

/* Of the same source. */
static void test_kinds_again(void)
{
    struct scan_progress found;
    source_settle();
    catalog_close(scanning_run(RESCAN_AUTO, NULL));
    struct catalog *c = scanning_run(RESCAN_AUTO, &found);
    is_uint(found.reused, 2, "all is taken over");
    ok(are_noted(c), "with what was noted");
    source_add(scanning_root, "d/new", 1); /* of two directories one is taken over */
    catalog_close(c);
    c = scanning_run(RESCAN_AUTO, &found);
    is_uint(found.reused, 1, "one is taken over");
    ok(are_noted(c), "with what was noted");
    catalog_close(c);
}

static void test_empty(void)
{
    scanning_begin("empty");
    struct catalog *c = scanning_run(RESCAN_AUTO, NULL);
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

static void make_comb(int levels)
{
    int fd = open(scanning_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int level = 0; level < levels; level++) {
        int down = comb_down(fd, level);
        close(fd);
        fd = down;
    }
    close(fd);
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
    scanning_begin("deep");
    make_comb(LEVELS);
    struct catalog *c = scanning_run(RESCAN_AUTO, NULL);
    is_uint(catalog_files(c), LEVELS, "a source %d levels deep", LEVELS);
    ok(same_below(c), "is there down to its end");
    struct digest before = scanning_digest(c);
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
    c = scanning_run(RESCAN_ALWAYS, NULL);
    setrlimit(RLIMIT_NOFILE, &limit);
    ok(same_digest(scanning_digest(c), before), "few descriptors make no difference");
    catalog_close(c);
    remove_source();
}

/* Deeper than any path that a catalog takes: cut off there, said, and no failure. */
static void test_too_deep(void)
{
    scanning_begin("too-deep");
    int log = scanning_log();
    make_comb(CATALOG_PATH_MAX / NAME + 10);
    struct catalog *c = scanning_run(RESCAN_AUTO, NULL);
    bool all = true;
    for (uint64_t ino = CATALOG_ROOT; ino <= catalog_inodes(c); ino++)
        all &= strcmp(source_path(c, ino), "?") != 0;
    ok(all, "every path of the catalog can be told");
    ok(catalog_notes(c)->unreadable > 0 && scanning_log_has(log, "File name too long"),
       "what is too deep is counted and logged");
    uint64_t lacking = 0;
    is_uint(catalog_lacking(c, &lacking), 1, "one directory lacks entries");
    is_uint((strlen(source_path(c, lacking)) + 1) / (NAME + 1), CATALOG_PATH_MAX / (NAME + 1), "it is the deepest one");
    catalog_close(c);
    remove_source();
    scanning_log_end(log);
}

static void test_wide(void)
{
    scanning_begin("wide");
    char name[64];
    enum { FILES = 20000, DIRECTORIES = 3000 };
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "big/prefix_%05d", i * 7919 % FILES);
        source_add(scanning_root, name, 0);
    }
    for (int i = 0; i < DIRECTORIES; i++) {
        snprintf(name, sizeof name, "dirs/%04d/x", i);
        source_add(scanning_root, name, 0);
    }
    struct catalog *c = scanning_run(RESCAN_AUTO, NULL);
    is_uint(catalog_files(c), FILES + DIRECTORIES, "a directory of many files and one of many directories");
    uint64_t big = source_find(c, "big"), ino;
    bool sorted = catalog_child(c, big, FILES, &ino) == -ENOENT;
    for (uint32_t i = 0; sorted && i < FILES; i++) {
        snprintf(name, sizeof name, "big/prefix_%05u", i);
        sorted = catalog_child(c, big, i, &ino) == 0 && strcmp(source_path(c, ino), name) == 0;
    }
    ok(sorted, "are sorted");
    catalog_close(c);
}

/* --- what cannot be read; as another user, for root reads everything --- */

static void scan_unreadable(void)
{
    int log = scanning_log();
    struct catalog *c = scanning_run(RESCAN_AUTO, NULL);
    is_uint(catalog_notes(c)->unreadable, 2, "two directories cannot be read");
    ok(source_find(c, "closed") && !source_find(c, "closed/x"), "one is there, empty");
    ok(scanning_log_has(log, "scan closed: Permission denied"), "and in the log by name");
    ok(source_find(c, "names") && !source_find(c, "names/x"), "another shows names only");
    ok(source_find(c, "open/x"), "the rest is there");
    is_uint(catalog_lacking(c, NULL), 0, "missing rights are no fault of the source");
    catalog_close(c);
    scanning_log_end(log);
}

static void test_unreadable(void)
{
    scanning_begin("unreadable");
    source_add(scanning_root, "closed/x", 1);
    source_add(scanning_root, "names/x", 1);
    source_add(scanning_root, "open/x", 1);
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
    struct catalog *c = scanning_run(RESCAN_AUTO, NULL);
    ok(source_find(c, "closed/x") && source_find(c, "names/x"), "when they can be read they are, at the next scan");
    is_uint(catalog_notes(c)->unreadable, 0, "and nothing is noted");
    catalog_close(c);
}

static void test_root_unreadable(void)
{
    scanning_begin("root");
    source_add(scanning_root, "x", 1);
    struct catalog *c;
    struct str why = STR_INIT;
    struct scan_progress progress;
    int fd = open(scanning_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    is_int(scan_source(fd, scanning_path, &(struct scan_options){0}, &c, &why, &progress), 0, "a source opened O_PATH");
    catalog_close(c);
    close(fd);
    fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    is_int(scan_source(fd, scanning_path, &(struct scan_options){0}, &c, &why, &progress), -ENOTDIR,
           "a source that is none");
    ok(why.length > 0, "is refused: %s", why.data);
    close(fd);
    c = scanning_run(RESCAN_NEVER, NULL);
    is_uint(catalog_files(c), 1, "the catalog of before is still there");
    catalog_close(c);
    str_fini(&why);
}

int main(void)
{
    test_kinds();
    test_kinds_again();
    test_empty();
    test_deep();
    test_too_deep();
    test_wide();
    test_unreadable();
    test_root_unreadable();
    return done_testing();
}
