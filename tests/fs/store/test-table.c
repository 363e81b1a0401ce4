/* Which files of RocksDB may be opened: with the checksums of this version and of older ones, and nothing damaged. */
#include "fs/store/rocks-inside.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CRC32C = 1, VALUES = 20, VALUE = 100000 };

/* A table of some values with this kind of checksum. */
static const char *make_table(int sums)
{
    const char *path = test_path("%d.sst", sums);
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_envoptions_t *env = rocksdb_envoptions_create();
    char *error = NULL, *value = malloc(VALUE);
    rocksdb_block_based_options_set_format_version(table, ROCKS_TABLE_FORM);
    rocksdb_block_based_options_set_checksum(table, (char)sums);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_options_set_compression(options, rocksdb_no_compression);
    rocksdb_sstfilewriter_t *writer = rocksdb_sstfilewriter_create(env, options);
    rocksdb_sstfilewriter_open(writer, path, &error);
    for (int i = 0; i < VALUES && !error; i++) {
        char key[8];
        snprintf(key, sizeof key, "%07d", i);
        memset(value, i, VALUE);
        rocksdb_sstfilewriter_put(writer, key, sizeof key, value, VALUE, &error);
    }
    if (!error)
        rocksdb_sstfilewriter_finish(writer, &error);
    if (error)
        bail_out("write %s: %s", path, error);
    rocksdb_sstfilewriter_destroy(writer);
    rocksdb_envoptions_destroy(env);
    rocksdb_options_destroy(options);
    rocksdb_block_based_options_destroy(table);
    free(value);
    return path;
}

/* Check it after one bit of byte `at` was changed; `at` < 0: counted from its end. */
static int check_damaged(int fd, off_t at)
{
    char byte;
    if (at < 0)
        at += lseek(fd, 0, SEEK_END);
    if (pread(fd, &byte, 1, at) != 1)
        bail_out("read byte %lld", (long long)at);
    byte ^= 4;
    if (pwrite(fd, &byte, 1, at) != 1)
        bail_out("write byte %lld", (long long)at);
    int error = rocks_check_table(fd, true);
    byte ^= 4;
    if (pwrite(fd, &byte, 1, at) != 1)
        bail_out("write byte %lld", (long long)at);
    return error;
}

static void test_sums(int sums, const char *what)
{
    const char *path = make_table(sums);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    is_int(rocks_check_table(fd, true), 0, "a table with %s may be opened", what);
    is_int(check_damaged(fd, 5000), -EBADMSG, "not with a changed byte in its first block");
    is_int(check_damaged(fd, -200), -EBADMSG, "nor in what leads to the blocks");
    is_int(check_damaged(fd, -53), -EBADMSG, "nor with another kind of checksum in its footer");
    is_int(rocks_check_table(fd, true), 0, "as it was, it may be opened again");
    close(fd);
}

int main(void)
{
    test_sums(ROCKS_XXH64, "XXH64");
    test_sums(ROCKS_XXH3, "XXH3, of an older version,");
    int fd = open(make_table(CRC32C), O_RDONLY | O_CLOEXEC);
    is_int(rocks_check_table(fd, true), -EBADMSG, "a table with CRC32C may not");
    close(fd);
    return done_testing();
}
