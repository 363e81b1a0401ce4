/* fs/base/hash.h: the bodies agree with each other, with libxxhash's own vectors, and with what was written before. */
#include "fs/base/hash.h"
#include "tests/lib/tap.h"

#define XXH_VECTOR 0 /* XXH_SCALAR */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 300 << 10 };

static void fill(uint8_t *bytes, size_t n)
{
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        bytes[i] = (uint8_t)x;
    }
}

/* What lies on disks and goes between machines must stay as it is, whatever library it is built with. */
static void test_golden(const uint8_t *bytes)
{
    char text[DIGEST_TEXT];
    struct digest d = hash128("", 0, 0);
    is_uint(hash64("", 0, 0), UINT64_C(0x2d06800538d394c2), "nothing, in 64 bits");
    is_str(digest_format(&d, text), "99aa06d3014798d86001c324468d497f", "nothing, in 128 bits");
    is_uint(hash64("dealfs", 6, 1), UINT64_C(0x8315a4846e07c01b), "six bytes");
    is_uint(hash64(bytes, 112 << 10, 7), UINT64_C(0x8dd8f6527b9fa816), "112 KiB");
    d = hash128(bytes, 112 << 10, 7);
    is_str(digest_format(&d, text), "c0c934447657a5648dd8f6527b9fa816", "112 KiB in 128 bits");
}

/* libxxhash's choice for this processor, and its body without vectors, which is compiled here. */
static void test_bodies(const uint8_t *bytes)
{
    size_t compared = 0, different = 0;
    for (size_t n = 0; n < BYTES - 64; n += n < 2100 ? 1 : 1009)
        for (size_t from = 0; from < 64; from += 21) {
            uint64_t seed = n % 3 ? n * UINT64_C(0x9e3779b97f4a7c15) : 0;
            XXH128_hash_t plain = XXH3_128bits_withSeed(bytes + from, n, seed);
            struct digest chosen = hash128(bytes + from, n, seed);
            compared++;
            different += XXH3_64bits_withSeed(bytes + from, n, seed) != hash64(bytes + from, n, seed) ||
                         XXH128_isEqual(plain, XXH128_hashFromCanonical((XXH128_canonical_t *)chosen.byte)) == 0;
        }
    ok(compared > 8000 && different == 0, "%zu of %zu lengths and alignments differ", different, compared);
}

static void test_sensitivity(const uint8_t *bytes)
{
    uint8_t *copy = malloc(BYTES);
    memcpy(copy, bytes, BYTES);
    uint64_t whole = hash64(copy, 128 << 10, 1);
    size_t same = 0;
    for (size_t bit = 0; bit < (128u << 13); bit += 4099) {
        copy[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        same += hash64(copy, 128 << 10, 1) == whole;
        copy[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    is_uint(same, 0, "every flipped bit is seen");
    ok(hash64(copy, 128 << 10, 1) == whole && hash64(copy, 128 << 10, 2) != whole, "the seed counts");
    free(copy);
}

static void test_digest_text(void)
{
    struct digest d, before;
    memset(&d, 0x5a, sizeof d);
    before = d;
    static const char *const bad[] = {
        "",
        "00112233445566778899aabbccddeef",
        "00112233445566778899aabbccddeeff0",
        "00112233445566778899aabbccddeefg",
        "0011223344556677 899aabbccddeeff",
        "\020\020112233445566778899aabbccddeeff",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        is_int(digest_parse(bad[i], &d), -EINVAL, "bad digest %zu is refused", i);
    is_mem(&d, &before, sizeof d, "and nothing written");
    char text[DIGEST_TEXT];
    is_int(digest_parse("00112233445566778899AABBccddeeff", &d), 0, "capitals are accepted");
    is_str(digest_format(&d, text), "00112233445566778899aabbccddeeff", "and written small");
}

int main(void)
{
    uint8_t *bytes = malloc(BYTES);
    fill(bytes, BYTES);
    test_golden(bytes);
    test_bodies(bytes);
    test_sensitivity(bytes);
    test_digest_text();
    free(bytes);
    return done_testing();
}
