/* XXH3 from libxxhash's header, and the choice of its body: every stored value is checked at every read, so the widest
 * vectors that the processor has are worth having. All bodies give the same results. */
#include "fs/base/hash.h"
#include "fs/base/hash-vector.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

uint64_t hash64_plain(const void *bytes, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, n, seed);
}

struct digest hash128_plain(const void *bytes, size_t n, uint64_t seed)
{
    struct digest d;
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_withSeed(bytes, n, seed));
    memcpy(d.byte, canonical.digest, sizeof d.byte);
    return d;
}

static int has_avx2; /* set once, before main */

__attribute__((constructor)) static void hash_choose(void)
{
#if HASH_AVX2
    __builtin_cpu_init();
    has_avx2 = __builtin_cpu_supports("avx2") != 0;
#endif
}

const char *hash_body(void)
{
    return has_avx2 ? "avx2" : "plain";
}

uint64_t hash64(const void *bytes, size_t n, uint64_t seed)
{
#if HASH_AVX2
    if (has_avx2 && n > HASH_SHORT)
        return hash64_avx2(bytes, n, seed);
#endif
    return hash64_plain(bytes, n, seed);
}

struct digest hash128(const void *bytes, size_t n, uint64_t seed)
{
#if HASH_AVX2
    if (has_avx2 && n > HASH_SHORT)
        return hash128_avx2(bytes, n, seed);
#endif
    return hash128_plain(bytes, n, seed);
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
