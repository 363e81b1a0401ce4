/* cli/live/walk and compare: two directories against each other, with every kind of difference. */
#include "cli/live/walk.h"
#include "fs/base/file.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BIG = 3 << 20 };

static int source, mount; /* the roots */
static char *big;

static void must(int result, const char *what)
{
    if (result < 0)
        bail_out("%s: %s", what, strerror(errno));
}

static void set_time(int root, const char *path, time_t seconds)
{
    const struct timespec times[2] = {{seconds, 12345}, {seconds, 12345}};
    must(utimensat(root, path, times, AT_SYMLINK_NOFOLLOW), path);
}

static void put(int root, const char *path, const void *bytes, size_t n)
{
    int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    must(fd, path);
    if (file_write_all(fd, bytes, n) < 0)
        bail_out("write %s", path);
    close(fd);
    set_time(root, path, 1000);
}

static void fill(int root)
{
    must(mkdirat(root, "a", 0755), "a");
    must(mkdirat(root, "a/deep", 0755), "a/deep");
    must(mkdirat(root, "empty", 0700), "empty");
    put(root, "a/one", "1", 1);
    put(root, "a/deep/big", big, BIG);
    put(root, "a/nothing", "", 0);
    put(root, "odd \n\xff name", "odd", 3);
    must(symlinkat("a/one", root, "link"), "link");
    set_time(root, "link", 1000);
    for (int i = 0; i < 3000; i++) {
        char name[32];
        snprintf(name, sizeof name, "a/deep/%05d", i);
        put(root, name, name, strlen(name));
    }
}

static void set_directory_times(int root)
{
    static const char *const names[] = {"a/deep", "a", "empty", "."};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        set_time(root, names[i], 2000);
}

static int compare(int jobs, struct walk_counts *counts, struct str *difference)
{
    struct walk_options options = {.jobs = jobs};
    set_directory_times(source);
    set_directory_times(mount);
    str_clear(difference);
    *counts = (struct walk_counts){0};
    return walk_compare(source, mount, &options, counts, difference);
}

static void test_same(void)
{
    struct walk_counts counts = {0};
    struct str difference = STR_INIT;
    is_int(compare(4, &counts, &difference), 0, "two trees that are the same: %s",
           difference.length > 0 ? difference.data : "");
    is_uint(counts.files, 3004, "files");
    is_uint(counts.directories, 4, "directories");
    is_uint(counts.links, 1, "symlinks");
    ok(counts.bytes > BIG, "bytes");
    is_uint(counts.unreadable, 0, "nothing is left uncompared");
    str_fini(&difference);
}

static void test_passed_over(void)
{
    struct walk_counts counts = {0};
    struct str difference = STR_INIT;
    must(mkfifoat(source, "a/fifo", 0600), "fifo");
    must(mkdirat(source, ".dealfs", 0700), ".dealfs");
    put(mount, ".dealfs", "", 0);
    is_int(compare(2, &counts, &difference), 0, "a fifo and .dealfs at the root are passed over");
    is_uint(counts.left_out, 1, "the fifo is counted");
    put(mount, "a/.dealfs", "", 0);
    is_int(compare(2, &counts, &difference), 1, "but not a .dealfs elsewhere");
    must(unlinkat(mount, "a/.dealfs", 0), "unlink");
    must(unlinkat(mount, ".dealfs", 0), "unlink");
    must(unlinkat(source, ".dealfs", AT_REMOVEDIR), "rmdir");
    must(unlinkat(source, "a/fifo", 0), "unlink");
    str_fini(&difference);
}

/* Change something, see what is said of it by 1 and by 8 jobs, and put it back. */
static void differ(const char *what, void (*change)(void), void (*restore)(void), const char *expected)
{
    struct walk_counts counts = {0};
    struct str difference = STR_INIT;
    change();
    for (int jobs = 1; jobs <= 8; jobs += 7) {
        is_int(compare(jobs, &counts, &difference), 1, "%s is seen by %d jobs", what, jobs);
        is_str(difference.data, expected, "and said");
    }
    restore();
    is_int(compare(4, &counts, &difference), 0, "all is well again");
    str_fini(&difference);
}

static void flip_byte(void)
{
    int fd = openat(mount, "a/deep/big", O_WRONLY);
    must(fd, "big");
    char other = (char)(big[2000000] ^ 1);
    must((int)pwrite(fd, &other, 1, 2000000), "pwrite");
    close(fd);
    set_time(mount, "a/deep/big", 1000);
}
static void restore_byte(void)
{
    put(mount, "a/deep/big", big, BIG);
}

static void flip_two(void)
{
    flip_byte();
    put(mount, "a/deep/02999", "a/deep/02998", 12);
}
static void restore_two(void)
{
    restore_byte();
    put(mount, "a/deep/02999", "a/deep/02999", 12);
}

static void grow(void)
{
    put(mount, "a/one", "12", 2);
}
static void shrink(void)
{
    put(mount, "a/one", "1", 1);
}

static void touch(void)
{
    set_time(mount, "a/one", 1001);
}
static void untouch(void)
{
    set_time(mount, "a/one", 1000);
}

static void change_mode(void)
{
    must(fchmodat(mount, "empty", 0755, 0), "chmod");
}
static void restore_mode(void)
{
    must(fchmodat(mount, "empty", 0700, 0), "chmod");
}

static void retarget(void)
{
    must(unlinkat(mount, "link", 0), "unlink");
    must(symlinkat("a/two", mount, "link"), "symlink");
    set_time(mount, "link", 1000);
}
static void restore_link(void)
{
    must(unlinkat(mount, "link", 0), "unlink");
    must(symlinkat("a/one", mount, "link"), "symlink");
    set_time(mount, "link", 1000);
}

static void drop(void)
{
    must(unlinkat(mount, "odd \n\xff name", 0), "unlink");
}
static void restore_odd(void)
{
    put(mount, "odd \n\xff name", "odd", 3);
}

static void add(void)
{
    put(mount, "empty/more", "", 0);
}
static void unadd(void)
{
    must(unlinkat(mount, "empty/more", 0), "unlink");
}

static void become_directory(void)
{
    must(unlinkat(mount, "a/nothing", 0), "unlink");
    must(mkdirat(mount, "a/nothing", 0755), "mkdir");
}
static void become_file(void)
{
    must(unlinkat(mount, "a/nothing", AT_REMOVEDIR), "rmdir");
    put(mount, "a/nothing", "", 0);
}

static void test_differences(void)
{
    char text[128];
    snprintf(text, sizeof text, "a/deep/big: byte at offset 2000000: 0x%02x in the source, 0x%02x in the mount",
             (unsigned char)big[2000000], (unsigned char)big[2000000] ^ 1);
    differ("a byte", flip_byte, restore_byte, text);
    differ("the first of two", flip_two, restore_two,
           "a/deep/02999: byte at offset 11: 0x39 in the source, 0x38 in the mount");
    differ("a size", grow, shrink, "a/one: size: 1 in the source, 2 in the mount");
    differ("an mtime", touch, untouch, "a/one: mtime: 1000.000012345 in the source, 1001.000012345 in the mount");
    differ("a mode", change_mode, restore_mode, "empty: mode: 0700 in the source, 0755 in the mount");
    differ("a target", retarget, restore_link, "link: target: a/one in the source, a/two in the mount");
    differ("a missing entry", drop, restore_odd, "odd \\x0a\\xff name: in the source only");
    differ("one too many", add, unadd, "empty/more: in the mount only");
    differ("another type", become_directory, become_file,
           "a/nothing: type: file in the source, directory in the mount");
}

static void test_stop(void)
{
    volatile sig_atomic_t stop = 1;
    struct walk_options options = {.jobs = 2, .stop = &stop};
    struct walk_counts counts = {0};
    struct str difference = STR_INIT;
    is_int(walk_compare(source, mount, &options, &counts, &difference), -ECANCELED, "it can be stopped");
    str_fini(&difference);
}

/* A path of more than PATH_MAX, made step by step, with a file and a symlink at its end. */
static void make_deep(int root, const char *name, const char *leaf, struct str *path)
{
    int at = dup(root);
    for (int i = 0; i < 30; i++) {
        must(mkdirat(at, name, 0755), "mkdir");
        int next = openat(at, name, O_RDONLY | O_DIRECTORY);
        must(next, "open");
        set_time(at, name, 2000);
        close(at);
        at = next;
        str_adds(path, name);
        str_adds(path, "/");
    }
    must(symlinkat(leaf, at, "link"), "symlink");
    set_time(at, "link", 1000);
    put(at, "leaf", leaf, 4);
    set_time(at, ".", 2000);
    close(at);
}

static void deep_time(int root, const char *name)
{
    int at = dup(root);
    for (int i = 0; i < 30; i++) {
        set_time(at, name, 2000);
        int next = openat(at, name, O_RDONLY | O_DIRECTORY);
        close(at);
        at = next;
    }
    close(at);
}

static void compare_deep(const char *name, const char *leaf, int expected, struct str *path, struct str *difference)
{
    struct walk_counts counts = {0};
    str_clear(path);
    make_deep(mount, name, leaf, path);
    deep_time(source, name);
    deep_time(mount, name);
    is_int(compare(2, &counts, difference), expected, "a path of %zu bytes: %s", path->length, leaf);
    is_int(dir_remove_tree(mount, name), 0, "removed");
}

static void test_deep(void)
{
    struct str path = STR_INIT, difference = STR_INIT;
    char name[201];
    memset(name, 'd', 200);
    name[200] = '\0';
    make_deep(source, name, "leaf", &path);
    ok(path.length > PATH_MAX, "the path has %zu bytes", path.length);
    compare_deep(name, "leaf", 0, &path, &difference);
    compare_deep(name, "lead", 1, &path, &difference);
    str_adds(&path, "leaf: byte at offset 3: 0x66 in the source, 0x64 in the mount");
    is_str(difference.data, path.data, "the file at its end");
    str_fini(&path);
    str_fini(&difference);
    is_int(dir_remove_tree(source, name), 0, "removed");
}

int main(void)
{
    big = malloc(BIG);
    for (size_t i = 0; big && i < BIG; i++)
        big[i] = (char)(i * 2654435761u >> 13);
    must(mkdir(test_path("source"), 0755), "mkdir");
    must(mkdir(test_path("mount"), 0755), "mkdir");
    source = open(test_path("source"), O_RDONLY | O_DIRECTORY);
    mount = open(test_path("mount"), O_RDONLY | O_DIRECTORY);
    must(source, "source");
    must(mount, "mount");
    fill(source);
    fill(mount);
    test_same();
    test_passed_over();
    test_differences();
    test_stop();
    test_deep();
    close(source);
    close(mount);
    free(big);
    return done_testing();
}
