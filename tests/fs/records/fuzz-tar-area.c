/* libFuzzer target: other names for the headers of a file in a tar, however they are made. All bytes but the first
 * two are its area, whose headers get right checksums. What comes out is an area of the same length and with the same
 * data; its last name has the prefix, and as much of the key as was asked for. */
#include "fs/records/tar-area.h"
#include "fs/records/tar-header.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fix_checksum(char *block)
{
    unsigned sum = 0;
    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
}

/* Each call sees no more bytes than it may read. */
static int take_all(struct tar_area *area, char *bytes, size_t n, bool fix)
{
    int more = 1;
    for (tar_area_init(area); more > 0 && area->n <= n;) {
        if (fix && !area->map)
            fix_checksum(bytes + area->n - TAR_BLOCK);
        char *seen = malloc(area->n);
        memcpy(seen, bytes, area->n);
        more = tar_area_take(area, seen);
        free(seen);
    }
    return more;
}

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* The name that the renamed area has in place of this one. */
static void check_name(const char *old, size_t n, const struct tar_naming *naming, const char *name, size_t length)
{
    size_t key = tar_key_length(old, n), pre = strlen(naming->prefix);
    const char *slash = memrchr(old, '/', n);
    size_t directory = slash ? (size_t)(slash + 1 - old) : 0, stem = key - directory;
    size_t kept = stem < naming->kept ? stem : naming->kept;
    check(length == n - stem + pre + kept);
    check(memcmp(name, old, directory) == 0 && memcmp(name + directory, naming->prefix, pre) == 0);
    check(memcmp(name + directory + pre, old + directory, kept) == 0);
    check(memcmp(name + directory + pre + kept, old + key, n - key) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tar_area area, renamed;
    if (size < 2 + TAR_BLOCK)
        return 0;
    struct tar_naming naming = {.kept = data[1]};
    snprintf(naming.prefix, sizeof naming.prefix, "%llu-", 1ull << data[0] % 64);
    char *bytes = malloc(size - 2);
    memcpy(bytes, data + 2, size - 2);
    if (take_all(&area, bytes, size - 2, true) == 0 && area.file) {
        char *in = malloc(area.n), *out = malloc(area.n);
        memcpy(in, bytes, area.n);
        bool fits = tar_area_rename(&area, in, &naming, NULL) == 0;
        check(fits == (tar_area_rename(&area, in, &naming, out) == 0));
        if (fits) {
            check(take_all(&renamed, out, area.n, false) == 0 && renamed.n == area.n && renamed.main == area.main &&
                  renamed.named == area.named && renamed.data == area.data);
            check_name(in + area.name, area.length, &naming, out + renamed.name, renamed.length);
        }
        free(in);
        free(out);
    }
    free(bytes);
    return 0;
}
