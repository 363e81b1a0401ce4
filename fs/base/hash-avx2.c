/* The same body of XXH3 for processors with AVX2. Only hash.c calls it, after it has asked the processor; the
 * target is set here and not by the build, so that no other code of this file can come to use it. */
#include "fs/base/hash-vector.h"

#if HASH_AVX2

#include <immintrin.h>
#include <stdlib.h>
#include <string.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#define XXH_VECTOR 2 /* XXH_AVX2 */
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hash64_avx2(const void *bytes, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, n, seed);
}

struct digest hash128_avx2(const void *bytes, size_t n, uint64_t seed)
{
    struct digest d;
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_withSeed(bytes, n, seed));
    memcpy(d.byte, canonical.digest, sizeof d.byte);
    return d;
}

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif
