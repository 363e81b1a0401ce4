/* cli/epoch and cli/picture: every file is read once; the pictures are the same each time and of the right size. */
#include "cli/lab/epoch.h"
#include "cli/lab/picture.h"
#include "fs/base/file.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 24 };

static char names[FILES][16];
static char *paths[FILES];
static volatile sig_atomic_t stop;

static uint64_t write_pictures(int root)
{
    uint64_t bytes = 0;
    for (int i = 0; i < FILES; i++) {
        struct stat st;
        snprintf(names[i], sizeof names[i], "%d.jpg", i);
        paths[i] = names[i];
        if (picture_write(root, names[i], (uint64_t)i, (unsigned)i % 7) < 0 || fstatat(root, names[i], &st, 0) < 0)
            bail_out("write %s", names[i]);
        if (st.st_size < 80 << 10 || st.st_size > 150 << 10)
            fail("a picture has %jd bytes", (intmax_t)st.st_size);
        bytes += (uint64_t)st.st_size;
    }
    return bytes;
}

static void test_pictures(int root)
{
    struct str a = STR_INIT, b = STR_INIT;
    is_int(picture_write(root, "0.jpg", 0, 0), -EEXIST, "a file that is there is not written over");
    is_int(picture_write(root, "absent/0.jpg", 0, 0), -ENOENT, "a directory that is not there");
    is_int(picture_write(root, "again.jpg", 3, 3), 0, "the same number again");
    is_int(file_read(root, "3.jpg", 1 << 20, &a) || file_read(root, "again.jpg", 1 << 20, &b), 0, "both are read");
    ok(a.length == b.length && memcmp(a.data, b.data, a.length) == 0, "and are the same");
    is_mem(a.data, "\xff\xd8\xff", 3, "it begins as a JPEG file");
    is_mem(a.data + a.length - 2, "\xff\xd9", 2, "and ends as one");
    str_clear(&b);
    is_int(file_read(root, "10.jpg", 1 << 20, &b), 0, "another number");
    ok(a.length != b.length || memcmp(a.data, b.data, a.length) != 0, "gives another picture");
    str_fini(&a);
    str_fini(&b);
}

static void test_epoch(int root, uint64_t bytes)
{
    struct epoch one = {
        .path = paths, .files = FILES, .root = &root, .roots = 1, .threads = 1, .seed = 1, .stop = &stop};
    struct epoch four = {
        .path = paths, .files = FILES, .root = &root, .roots = 1, .threads = 4, .seed = 2, .stop = &stop};
    is_int(epoch_read(&one), 0, "one thread");
    is_uint(one.bytes, bytes, "reads every byte once");
    is_int(epoch_read(&four), 0, "four threads");
    is_uint(four.bytes, bytes, "do, too");
    is_uint(four.sum, one.sum, "the sum does not depend on the order");
    uint32_t order[FILES];
    for (uint32_t i = 0; i < FILES; i++)
        order[i] = FILES - 1 - i;
    four.order = order;
    four.rate = bytes * 4;
    is_int(epoch_read(&four), 0, "a given order, at a rate");
    ok(four.bytes == bytes && four.sum == one.sum, "is the same files");
    ok(four.elapsed >= 200000000, "and takes its time");
    order[5] = order[6];
    ok(epoch_read(&four) == 0 && four.sum != one.sum, "one that has a file twice is another sum");
    four.order = NULL;
    four.rate = 0;
    epoch_forget(&four);
    stop = 1;
    is_int(epoch_read(&four), -ECANCELED, "it can be stopped");
    stop = 0;
    paths[7] = "absent";
    is_int(epoch_read(&four), -ENOENT, "a file that is not there");
    paths[7] = names[7];
}

int main(void)
{
    int root = open(test_directory(), O_RDONLY | O_DIRECTORY);
    uint64_t bytes = write_pictures(root);
    test_pictures(root);
    test_epoch(root, bytes);
    close(root);
    return done_testing();
}
