/* fs/base/file.h: whole files, and folders made and removed. */
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "tests/lib/tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int entries(const char *path)
{
    CLEANUP_CLOSEDIR DIR *d = opendir(path);
    int n = -2;
    while (d && readdir(d))
        n++;
    return n;
}

static bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void touch(const char *path)
{
    CLEANUP_CLOSE int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        bail_out("touch %s: %s", path, strerror(errno));
}

static void test_read(void)
{
    CLEANUP_STR struct str s = STR_INIT;
    str_adds(&s, "before ");
    is_int(file_read(AT_FDCWD, test_path("none"), 100, &s), -ENOENT, "a missing file");
    is_int(file_read(AT_FDCWD, test_directory(), 100, &s), -EISDIR, "a directory");
    is_int(file_write_atomic(AT_FDCWD, test_path("f"), "0123456789", 10, 0640), 0, "a file of 10 bytes");
    is_int(file_read(AT_FDCWD, test_path("f"), 9, &s), -EFBIG, "is above 9");
    is_str(s.data, "before ", "and those add nothing");
    is_int(file_read(AT_FDCWD, test_path("f"), 10, &s), 0, "is not above 10");
    is_str(s.data, "before 0123456789", "and is appended");
    str_clear(&s);
    is_int(file_read(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, &s), 0, "a file whose size is said to be 0");
    ok(s.length > 10, "is read whole");
    is_int(file_read(AT_FDCWD, "/proc/self/mountinfo", 10, &s), -EFBIG, "or refused");
}

static void test_read_pipe(void)
{
    int p[2];
    CLEANUP_STR struct str s = STR_INIT;
    if (pipe2(p, O_CLOEXEC))
        bail_out("pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        static char block[300000];
        memset(block, 'p', sizeof block);
        _exit(file_write_all(p[1], block, sizeof block) != 0);
    }
    close(p[1]);
    is_int(file_read_fd(p[0], 300000, &s), 0, "a pipe in many pieces");
    is_uint(s.length, 300000, "is read whole");
    close(p[0]);
    waitpid(child, NULL, 0);
}

static void test_write_atomic(void)
{
    struct stat st;
    mkdir(test_path("w"), 0700);
    mode_t old = umask(077);
    CLEANUP_CLOSE int dir = open(test_path("w"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    is_int(file_write_atomic(dir, "f", "new", 3, 0644), 0, "written below a folder's descriptor");
    umask(old);
    ok(stat(test_path("w/f"), &st) == 0 && (st.st_mode & 07777) == 0644 && st.st_size == 3, "with its mode, whole");
    is_int(file_write_atomic(dir, "", "x", 1, 0600), -ENOENT, "no name");
    is_int(file_write_atomic(dir, "none/f", "x", 1, 0600), -ENOENT, "no folder");
    mkdir(test_path("w/d"), 0700);
    touch(test_path("w/d/x"));
    is_int(file_write_atomic(dir, "d", "x", 1, 0600), -EISDIR, "a folder is not replaced");
    is_int(entries(test_path("w")), 2, "and nothing is left beside");

    CLEANUP_CLOSE int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (full >= 0)
        is_int(file_write_all(full, "x", 1), -ENOSPC, "a full disk is said");
    else
        skip(1, "no /dev/full");
}

static void test_make(void)
{
    struct stat st;
    mode_t old = umask(022);
    is_int(dir_make("", 0700), -ENOENT, "no path");
    is_int(dir_make(test_path("f/x"), 0700), -ENOTDIR, "below a file");
    is_int(dir_make(test_path("f"), 0700), -ENOTDIR, "on a file");
    is_int(dir_make(test_path("a//b/c/"), 0700), 0, "with parents, and slashes too many");
    ok(stat(test_path("a/b"), &st) == 0 && (st.st_mode & 0777) == 0700, "which are as closed as the folder");
    is_int(dir_make(test_path("a/b/c"), 0700), 0, "again");
    is_int(dir_make("/", 0700), 0, "the root is there");
    is_int(dir_make("/proc/nothing/here", 0700), -ENOENT, "where nothing can be made");
    char longer[PATH_MAX + 10];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    is_int(dir_make(longer, 0700), -ENAMETOOLONG, "too long a path");
    umask(old);
}

static void test_remove(void)
{
    is_int(dir_remove_tree(AT_FDCWD, test_path("none")), 0, "nothing to remove");
    is_int(dir_make(test_path("t/1/2/3/4"), 0700), 0, "a tree");
    for (int i = 0; i < 500; i++)
        touch(test_path("t/1/2/file-%d", i));
    dir_make(test_path("outside"), 0700);
    touch(test_path("outside/kept"));
    if (symlink(test_path("outside"), test_path("t/1/link")) || symlink("/nowhere", test_path("t/dangling")))
        bail_out("symlink: %s", strerror(errno));
    is_int(dir_remove_tree(AT_FDCWD, test_path("t")), 0, "a tree is removed");
    ok(!exists(test_path("t")), "and gone");
    ok(exists(test_path("outside/kept")), "what its links led to is not");

    if (symlink(test_path("outside"), test_path("l")))
        bail_out("symlink: %s", strerror(errno));
    is_int(dir_remove_tree(AT_FDCWD, test_path("l")), 0, "a link is removed");
    ok(!exists(test_path("l")) && exists(test_path("outside/kept")), "and not what it leads to");
    CLEANUP_CLOSE int dir = open(test_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    is_int(dir_remove_tree(dir, "outside"), 0, "below a folder's descriptor");
    ok(!exists(test_path("outside")), "as well");
}

/* With a number of levels below `name`. */
static void nest(const char *name, int levels)
{
    CLEANUP_CLOSE int dir = open(test_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (mkdirat(dir, name, 0700))
        bail_out("mkdir: %s", strerror(errno));
    for (int i = 0; i < levels; i++) {
        int next = openat(dir, i == 0 ? name : "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (next < 0 || mkdirat(next, "d", 0700))
            bail_out("mkdir: %s", strerror(errno));
        close(dir);
        dir = next;
    }
}

/* The test's own end goes down by paths. */
static void remove_nested(const char *name)
{
    pid_t child = fork();
    int status;
    if (child == 0) {
        execlp("rm", "rm", "-rf", test_path("%s", name), NULL);
        _exit(127);
    }
    ok(waitpid(child, &status, 0) == child && status == 0, "rm can");
}

static void test_nested(void)
{
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    nest("most", DIR_DEEPEST - 1);
    is_int(dir_remove_tree(AT_FDCWD, test_path("most")), 0, "%d levels are removed", DIR_DEEPEST);
    ok(!exists(test_path("most")), "and gone");
    nest("deep", 60000);
    touch(test_path("deep/file"));
    is_int(dir_remove_tree(AT_FDCWD, test_path("deep")), -ENAMETOOLONG, "60,000 are refused");
    ok(exists(test_path("deep/d")) && !exists(test_path("deep/file")), "what lies beside them is removed");
    is_int(dir_bytes(AT_FDCWD, test_path("deep")), 0, "no files are counted in them");
    remove_nested("deep");
}

static void test_bytes(void)
{
    dir_make(test_path("b/1/2"), 0700);
    char *block = calloc(1, 8192);
    CLEANUP_CLOSE int fd = open(test_path("b/1/2/f"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    is_int(file_write_all(fd, block, 8192), 0, "8 KiB");
    is_int(fsync(fd), 0, "on the disk");
    ok(dir_bytes(AT_FDCWD, test_path("b")) >= 8192, "are counted");
    is_int((int)dir_bytes(AT_FDCWD, test_path("absent")), 0, "nothing in what is not there");
    free(block);
}

static void test_remove_mounted(void)
{
    dir_make(test_path("m/on/top"), 0700);
    dir_make(test_path("m/other"), 0700);
    if (mount("none", test_path("m/on"), "tmpfs", 0, NULL)) {
        skip(5, "cannot mount here: %s", strerror(errno));
        return;
    }
    touch(test_path("m/on/kept"));
    is_int(dir_remove_tree(AT_FDCWD, test_path("m")), -EBUSY, "a mount stops the removal");
    ok(exists(test_path("m/on/kept")), "and is not entered");
    ok(!exists(test_path("m/other")), "the rest has gone");
    is_int(umount(test_path("m/on")), 0, "without the mount");
    is_int(dir_remove_tree(AT_FDCWD, test_path("m")), 0, "all goes");
}

static void test_clocks(void)
{
    uint64_t a = clock_now(), b = clock_now();
    ok(a > 0 && b >= a, "the clock does not go back");
    ok(clock_realtime() / 1000000000 > 1700000000, "it is later than 2023");
}

int main(void)
{
    test_read();
    test_read_pipe();
    test_write_atomic();
    test_make();
    test_remove();
    test_nested();
    test_bytes();
    test_remove_mounted();
    test_clocks();
    return done_testing();
}
