/* libFuzzer target: no container, however made, may lead outside of it. The first byte chooses the format; half of the
 * tars get headers with right checksums. */
#include "fs/records/tar-rename.h"
#include "tests/fs/records/containers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fix_checksums(char *tar, size_t n)
{
    for (; n >= 512; tar += 512, n -= 512) {
        unsigned sum = 0;
        memset(tar + 148, ' ', 8);
        for (size_t i = 0; i < 512; i++)
            sum += (unsigned char)tar[i];
        snprintf(tar + 148, 8, "%06o", sum);
    }
}

static const char *renamed;

static int read_copy(void *user, void *to, size_t n, uint64_t offset)
{
    (void)user;
    memcpy(to, renamed + offset, n);
    return 0;
}

/* As if all of it were one record. */
static void rename_all(const char *copy, size_t n)
{
    size_t from = n / 3;
    char *part = malloc(n - from + 1);
    const struct tar_record record = {n, read_copy, NULL, from, n, part};
    struct tar_cut *cut;
    renamed = copy;
    memcpy(part, copy + from, n - from);
    if (tar_cut_make(&record, n, &cut) == 0) {
        tar_rename(&record, cut);
        free(cut);
    }
    free(part);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"tar", "tar", "tfrecord", "npy", "lines", "fixed"};
    struct str found = STR_INIT, why = STR_INIT;
    if (size < 2)
        return 0;
    size_t choice = data[0] % 8;
    char *copy = malloc(size - 1);
    memcpy(copy, data + 1, size - 1);
    if (choice == 0)
        fix_checksums(copy, size - 1);
    int error = containers_scan(copy, size - 1, choice < 6 ? container_format_find(names[choice]) : NULL, data[0],
                                &found, &why);
    if (error && !why.length)
        abort();
    rename_all(copy, size - 1);
    str_fini(&found);
    str_fini(&why);
    free(copy);
    return 0;
}
