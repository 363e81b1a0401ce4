/* XXH3 of libxxhash, which chooses the widest vectors of the processor: every stored value is checked at every read.
 * The results are the same with all of them. */
#include "fs/base/hash.h"

#ifdef __x86_64__
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

uint64_t hash64(const void *bytes, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, n, seed);
}

uint64_t hash_xxh64(const void *bytes, size_t n)
{
    return XXH64(bytes, n, 0);
}

struct digest hash128(const void *bytes, size_t n, uint64_t seed)
{
    struct digest d;
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_withSeed(bytes, n, seed));
    memcpy(d.byte, canonical.digest, sizeof d.byte);
    return d;
}

char *digest_format(const struct digest *d, char text[DIGEST_TEXT])
{
    for (size_t i = 0; i < sizeof d->byte; i++)
        snprintf(text + 2 * i, 3, "%02x", d->byte[i]);
    return text;
}

int digest_parse(const char *text, struct digest *d)
{
    struct digest parsed = {{0}};
    for (size_t i = 0; i < 2 * sizeof d->byte; i++) {
        unsigned char c = (unsigned char)text[i];
        if (!isxdigit(c))
            return -EINVAL;
        int value = isdigit(c) ? c - '0' : tolower(c) - 'a' + 10;
        parsed.byte[i / 2] = (uint8_t)(parsed.byte[i / 2] << 4 | value);
    }
    if (text[2 * sizeof d->byte] != '\0')
        return -EINVAL;
    *d = parsed;
    return 0;
}
