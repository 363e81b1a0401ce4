/* The tmpfs of a RAM tier: its budget is exact, and the kernel may use larger pages. */
#include "fs/attach/attach.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 16 << 20, PAGE = 4096, WRITE = 1 << 20 };

static char bytes[WRITE];

/* How many files of `each` bytes fit into `root`, at most SIZE / PAGE. */
static int fill(int root, size_t each)
{
    char name[32];
    for (int files = 0; files < SIZE / PAGE; files++) {
        snprintf(name, sizeof name, "%zu-%d", each, files);
        int fd = openat(root, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ssize_t n = fd < 0 ? -1 : write(fd, bytes, each);
        if (fd >= 0)
            close(fd);
        if (n != (ssize_t)each) {
            unlinkat(root, name, 0);
            return files;
        }
    }
    return SIZE / PAGE;
}

static void empty(int root, size_t each, int files)
{
    char name[32];
    for (int i = 0; i < files; i++) {
        snprintf(name, sizeof name, "%zu-%d", each, i);
        unlinkat(root, name, 0);
    }
}

/* A kernel that has larger pages for a tmpfs says so in the block size of a file. */
static void test_pages(int root)
{
    struct stat st;
    int fd = openat(root, "large", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    bool written = fd >= 0;
    for (int i = 0; i < 4; i++)
        written = written && write(fd, bytes, WRITE) == WRITE;
    ok(written && fstat(fd, &st) == 0, "write a file of 4 MiB");
    if (access("/sys/kernel/mm/transparent_hugepage/shmem_enabled", F_OK) == 0)
        ok(st.st_blksize > PAGE, "its pages may be larger than 4 KiB");
    else
        skip(1, "this kernel has no larger pages");
    is_int(st.st_blocks, 4 * WRITE / 512, "it takes no more room than its bytes");
    close(fd);
    unlinkat(root, "large", 0);
}

static void test_room(int root)
{
    int files = fill(root, PAGE);
    ok(files >= SIZE / PAGE - 16, "small files take one page each: %d of %d fit", files, SIZE / PAGE);
    empty(root, PAGE, files);
    files = fill(root, WRITE - PAGE);
    ok(files == SIZE / WRITE, "files of nearly 1 MiB fit to the last one: %d", files);
    empty(root, WRITE - PAGE, files);
}

int main(void)
{
    int root = -1;
    int error = attach_private_tmpfs(SIZE, geteuid(), getegid(), &root);
    if (error == -EPERM)
        plan_skip_all("this user may not mount a tmpfs");
    is_int(error, 0, "a tmpfs of its own");
    test_pages(root);
    test_room(root);
    return done_testing();
}
