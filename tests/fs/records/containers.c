#include "tests/fs/records/containers.h"

#include "fs/base/crc32c.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct held {
    const unsigned char *bytes;
    size_t n;
    uint64_t end; /* of the record before */
    struct str *found;
};

static int read_held(void *user, void *to, size_t n, uint64_t offset)
{
    struct held *held = user;
    if (offset > held->n || n > held->n - offset || n == 0)
        abort();
    memcpy(to, held->bytes + offset, n);
    return 0;
}

static int note_record(void *user, const struct found_record *r)
{
    struct held *held = user;
    if (r->offset < held->end || r->offset > held->n || r->length > held->n - r->offset || r->length == 0)
        abort();
    held->end = r->offset + r->length;
    str_addf(held->found, "%" PRIu64 "+%" PRIu32 "%s", r->offset, r->length, r->unended ? "!" : "");
    if (r->key) {
        str_adds(held->found, " ");
        str_add(held->found, r->key, r->key_length);
    }
    str_adds(held->found, "\n");
    return 0;
}

int containers_scan(const void *bytes, size_t n, const struct container_format *format, uint32_t row, struct str *found,
                    struct str *why)
{
    struct held held = {bytes, n, 0, found};
    struct record_scan scan = {.size = n,
                               .read = read_held,
                               .found = note_record,
                               .user = &held,
                               .most = UINT64_MAX,
                               .format = format,
                               .row = row,
                               .why = why};

    return container_scan(&scan);
}

static void pad(struct str *tar)
{
    static const char zeros[512];
    str_add(tar, zeros, (512 - tar->length % 512) % 512);
}

void tar_add(struct str *tar, const char *name, char type, const void *data, size_t n)
{
    char block[512] = "";
    unsigned sum = 0;
    strncpy(block, name, 100);
    strcpy(block + 100, "0000644");
    snprintf(block + 124, 12, "%011zo", n);
    strcpy(block + 136, "00000000000");
    memset(block + 148, ' ', 8);
    block[156] = type;
    memcpy(block + 257, "ustar\00000", 8);
    for (size_t i = 0; i < sizeof block; i++)
        sum += (unsigned char)block[i];
    snprintf(block + 148, 8, "%06o", sum);
    str_add(tar, block, sizeof block);
    str_add(tar, data, n);
    pad(tar);
}

void tar_end(struct str *tar)
{
    static const char zeros[1024];
    str_add(tar, zeros, sizeof zeros);
}

static void add_little(struct str *file, uint64_t number, size_t n)
{
    for (; n > 0; n--, number >>= 8)
        str_add(file, (char[]){(char)number}, 1);
}

void tfrecord_add(struct str *file, const void *data, size_t n)
{
    add_little(file, n, 8);
    add_little(file, crc32c_masked(file->data + file->length - 8, 8), 4);
    str_add(file, data, n);
    add_little(file, crc32c_masked(data, n), 4);
}
