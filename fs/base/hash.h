/* The hashes of dealfs: XXH3, and a 128-bit digest with its text form. */
#ifndef FS_BASE_HASH_H
#define FS_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct digest {
    uint8_t byte[16];
};
enum { DIGEST_TEXT = 33 };

static inline bool digest_equal(const struct digest *a, const struct digest *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* A number that is as random as the digest. */
static inline uint64_t digest_head(const struct digest *d)
{
    uint64_t head;
    memcpy(&head, d->byte, sizeof head);
    return head;
}

uint64_t hash_xxh64(const void *bytes, size_t n); /* XXH64, as RocksDB uses it */
uint64_t hash64(const void *bytes, size_t n, uint64_t seed);
struct digest hash128(const void *bytes, size_t n, uint64_t seed);
char *digest_format(const struct digest *d, char text[DIGEST_TEXT]); /* 32 hexadecimal digits */
int digest_parse(const char *text, struct digest *d);                /* 0 or -EINVAL */

#endif
