/* A mount's own copy of its catalog. */
#include "fs/base/file.h"
#include "fs/catalog/scanner.h"
#include "fs/catalog/copy.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void make_catalog(void)
{
    struct scan_options options = {.threads = 2};
    struct scan_progress progress;
    struct catalog *catalog;
    struct str why = STR_INIT;
    mkdir(test_path("source"), 0700);
    for (int i = 0; i < 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "source/%d", i);
        file_write_atomic(AT_FDCWD, test_path("%s", name), name, (size_t)i % 7, 0600);
    }
    int source = open(test_path("source"), O_RDONLY | O_DIRECTORY);
    if (scan_source(source, test_path("catalog"), &options, &catalog, &why, &progress))
        bail_out("scan: %s", why.data);
    catalog_close(catalog);
    close(source);
}

static int fill(int copy)
{
    int from = open(test_path("catalog"), O_RDONLY);
    int error = copy_fill(copy, from, UINT64_MAX - 1, NULL);
    close(from);
    return error;
}

static void test_memory(void)
{
    struct catalog *catalog;
    int copy = -1;
    is_int(copy_make(-1, 1000, &copy), 0, "a small one is memory");
    ok(!file_is_sealed(copy), "that waits to be filled");
    is_int(fill(copy), 0, "filled");
    ok(file_is_sealed(copy), "and sealed then");
    ok(ftruncate(copy, 0) < 0 && pwrite(copy, "x", 1, 0) < 0, "nobody can change it");
    is_int(catalog_open_fd(copy, &catalog), 0, "it opens");
    is_uint(catalog_files(catalog), 100, "with all of its files");
    catalog_close(catalog);
    close(copy);
}

static void test_damaged(void)
{
    int copy = -1, file = open(test_path("catalog"), O_RDWR);
    struct stat st;
    char byte;
    is_int(copy_make(-1, 0, &copy), 0, "one for a catalog that comes later");
    fstat(file, &st);
    int refused = 0;
    for (off_t at = 0; at < st.st_size; at += 97) {
        char flipped;
        if (pread(file, &byte, 1, at) != 1)
            bail_out("read");
        flipped = (char)(byte ^ 4);
        (void)!pwrite(file, &flipped, 1, at);
        refused += fill(copy) == -EBADMSG;
        (void)!pwrite(file, &byte, 1, at);
    }
    is_int(refused, (int)((st.st_size + 96) / 97), "a flipped bit anywhere is refused");
    ok(!file_is_sealed(copy), "and what is refused is not sealed");
    is_int(fill(copy), 0, "it can be filled with a whole one after that");
    (void)!ftruncate(file, 0);
    close(copy);
    is_int(copy_make(-1, 0, &copy), 0, "another");
    is_int(fill(copy), -EBADMSG, "an empty file is refused");
    close(copy);
    close(file);
}

/* Whose folder it is can put a file without end there. */
static void test_endless(void)
{
    int copy = -1, from = open(test_path("catalog"), O_RDONLY), endless = open("/dev/zero", O_RDONLY);
    struct stat st, copied;
    fstat(from, &st);
    is_int(copy_make(-1, (uint64_t)st.st_size, &copy), 0, "one for a catalog of known size");
    is_int(copy_fill(copy, endless, (uint64_t)st.st_size, NULL), -EFBIG, "what is larger is refused");
    ok(fstat(copy, &copied) == 0 && copied.st_size <= st.st_size + (2 << 20), "and not copied");
    struct catalog *opened = NULL;
    is_int(copy_fill(copy, from, (uint64_t)st.st_size, &opened), 0, "the catalog itself is not");
    ok(opened && catalog_memory(opened) == (uint64_t)st.st_size, "and the copy is opened");
    catalog_close(opened);
    close(endless);
    close(from);
    close(copy);
}

static void test_large(const char *where)
{
    int state = open(where, O_RDONLY | O_DIRECTORY), copy = -1;
    diag("in %s", where);
    struct stat st;
    is_int(copy_make(state, (256 << 20) + 1, &copy), 0, "a large one is a file");
    ok(fstat(copy, &st) == 0 && st.st_nlink == 0, "without a name");
    is_int(fill(copy), 0, "filled");
    struct catalog *catalog;
    is_int(catalog_open_fd(copy, &catalog), 0, "it opens");
    catalog_close(catalog);
    close(copy);
    close(state);
}

int main(void)
{
    make_catalog();
    test_memory();
    test_large("/dev/shm"); /* files on a tmpfs can be sealed, in a way */
    test_large("/var/tmp");
    test_endless();
    test_damaged();
    return done_testing();
}
