/* The bodies of XXH3 that hash.c chooses from, for it and its test. */
#ifndef FS_BASE_HASH_VECTOR_H
#define FS_BASE_HASH_VECTOR_H

#include "fs/base/hash.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HASH_AVX2 1
#else
#define HASH_AVX2 0
#endif

/* Up to here XXH3 uses no vectors. */
enum { HASH_SHORT = 240 };

const char *hash_body(void); /* the one in use here: "avx2" or "plain" */

uint64_t hash64_plain(const void *bytes, size_t n, uint64_t seed);
struct digest hash128_plain(const void *bytes, size_t n, uint64_t seed);
uint64_t hash64_avx2(const void *bytes, size_t n, uint64_t seed);
struct digest hash128_avx2(const void *bytes, size_t n, uint64_t seed);

#endif
