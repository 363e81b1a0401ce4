/* Stored values: what goes in comes out, and nothing else passes for it. */
#include "fs/store/value.h"

#include "fs/store/answer.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 4711 };

static void fill(char *bytes, size_t n, bool shrinks)
{
    unsigned state = 1;
    for (size_t i = 0; i < n; i++)
        bytes[i] = shrinks ? (char)(i / 100) : (char)(rand_r(&state) >> 7);
}

static void test_round_trip(struct value_codec_state *codec, size_t raw, bool shrinks, bool try)
{
    char *value = malloc(VALUE_HEADER + raw), *original = malloc(raw), *buffer = malloc(VALUE_BYTES);
    fill(original, raw, shrinks);
    memcpy(value + VALUE_HEADER, original, raw);
    size_t n = value_seal(codec, value, raw, SEED, try);
    bool packed = value_codec_of(value) == VALUE_ZSTD;
    is_int(value_check(value, n, SEED, raw), 0, "%zu bytes pass", raw);
    const void *bytes = value_open(codec, value, n, buffer);
    ok(bytes && memcmp(bytes, original, raw) == 0, "%zu bytes come back", raw);
    ok(packed == (shrinks && try && raw > 200), "%zu bytes are %spacked", raw, packed ? "" : "not ");
    ok(n <= VALUE_HEADER + raw && (!packed || n <= VALUE_HEADER + raw - raw / 10), "a tenth is saved or nothing");
    free(value);
    free(original);
    free(buffer);
}

static void test_refusals(struct value_codec_state *codec, bool shrinks)
{
    enum { RAW = 5000 };
    char value[VALUE_HEADER + RAW], copy[VALUE_HEADER + RAW];
    fill(value + VALUE_HEADER, RAW, shrinks);
    size_t n = value_seal(codec, value, RAW, SEED, true);
    is_int(value_check(value, n, SEED + 1, RAW), -EBADMSG, "another seed");
    is_int(value_check(value, n, SEED, RAW - 1), -EBADMSG, "another raw length");
    is_int(value_check(value, n - 1, SEED, RAW), -EBADMSG, "cut short");
    is_int(value_check(value, VALUE_HEADER - 1, SEED, RAW), -EBADMSG, "less than a header");
    is_int(value_check(value, 0, SEED, RAW), -EBADMSG, "nothing");
    is_int(value_check(value, n, SEED, VALUE_BYTES + 1), -EBADMSG, "more than a value may have");
    int passed = 0;
    for (size_t bit = 0; bit < 8 * n; bit++) {
        memcpy(copy, value, n);
        copy[bit / 8] ^= (char)(1 << bit % 8);
        passed += value_check(copy, n, SEED, RAW) == 0;
    }
    is_int(passed, 0, "no flipped bit of %zu bytes passes", n);
}

static bool part_is_right(const char *value, const char *original, const struct value_part *p, bool damaged)
{
    struct iovec piece[VALUE_BYTES / VALUE_BLOCK];
    uint32_t from, to, at = p->from;
    value_part_stored(p, &from, &to);
    char *stored = malloc(to - from);
    memcpy(stored, value + from, to - from); /* nothing beside it is looked at */
    if (damaged)
        stored[(to - from) / 2] ^= 1;
    int pieces = value_part_open(p, stored, SEED, piece);
    bool right = (pieces < 0) == damaged;
    for (int i = 0; i < pieces; i++) {
        right = right && memcmp(piece[i].iov_base, original + at, piece[i].iov_len) == 0;
        at += (uint32_t)piece[i].iov_len;
    }
    free(stored);
    return right && (damaged || at == p->to);
}

static void test_blocks(struct value_codec_state *codec, size_t raw)
{
    char *value = malloc(VALUE_MOST), *original = malloc(raw), *buffer = malloc(VALUE_BYTES);
    unsigned state = (unsigned)raw;
    fill(original, raw, false);
    memcpy(value + VALUE_HEADER, original, raw);
    size_t n = value_seal(codec, value, raw, SEED, VALUE_TRY | VALUE_IN_BLOCKS);
    is_uint(n, VALUE_HEADER + raw + value_sums(raw), "%zu bytes in blocks", raw);
    is_int(value_codec_of(value), VALUE_BLOCKS, "say so");
    ok(value_is_in_blocks(n, raw) && !value_is_in_blocks(VALUE_HEADER + raw, raw), "as does the length");
    is_int(value_check(value, n, SEED, raw), 0, "pass");
    ok(part_is_right(value, original, &(struct value_part){(uint32_t)raw, 0, (uint32_t)raw, false}, false),
       "come back");
    ok(!value_open(codec, value, n, buffer), "not in one piece");
    int right = 0;
    for (int i = 0; i < 200; i++) {
        uint32_t from = (uint32_t)rand_r(&state) % (uint32_t)raw;
        uint32_t to = from + 1 + (uint32_t)rand_r(&state) % ((uint32_t)raw - from);
        right += part_is_right(value, original, &(struct value_part){(uint32_t)raw, from, to, false}, i % 2);
    }
    is_int(right, 200, "parts of them come back, and not when they are damaged");
    int passed = 0;
    for (size_t at = 0; at<n; at += n> 9000 ? 37 : 1) {
        value[at] ^= 4;
        passed += value_check(value, n, SEED, raw) == 0;
        value[at] ^= 4;
    }
    is_int(passed, 0, "no flipped bit passes");
    is_int(value_check(value, n, SEED + 1, raw), -EBADMSG, "nor another seed");
    is_int(value_check(value, n - 1, SEED, raw), -EBADMSG, "nor less of it");
    if (raw > 2 * VALUE_BLOCK) {
        char *first = value + VALUE_HEADER, *second = first + VALUE_SUM + VALUE_BLOCK;
        memcpy(first, second, VALUE_SUM + VALUE_BLOCK);
        is_int(value_check(value, n, SEED, raw), -EBADMSG, "nor a block in another's place");
    }
    free(value);
    free(original);
    free(buffer);
}

/* Random bytes, of which the last `zeros` are zero. */
static enum value_codec codec_of(struct value_codec_state *codec, size_t zeros, unsigned wish)
{
    enum { RAW = 128 << 10 };
    char *value = calloc(1, VALUE_MOST);
    fill(value + VALUE_HEADER, RAW - zeros, false);
    value_seal(codec, value, RAW, SEED, wish);
    enum value_codec found = value_codec_of(value);
    free(value);
    return found;
}

static void test_savings(struct value_codec_state *codec)
{
    static const struct {
        size_t zeros;
        enum value_codec alone, in_blocks;
    } rows[] = {
        {10 << 10, VALUE_RAW, VALUE_BLOCKS},
        {16 << 10, VALUE_ZSTD, VALUE_BLOCKS},
        {40 << 10, VALUE_ZSTD, VALUE_BLOCKS},
        {48 << 10, VALUE_ZSTD, VALUE_ZSTD},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        is_int(codec_of(codec, rows[i].zeros, VALUE_TRY), rows[i].alone, "%zu of 131072 bytes shrink", rows[i].zeros);
        is_int(codec_of(codec, rows[i].zeros, VALUE_TRY | VALUE_IN_BLOCKS), rows[i].in_blocks, "%zu in a large file",
               rows[i].zeros);
    }
}

static void test_seeds(void)
{
    ok(value_seed(1, 0) != value_seed(1, 1), "values of a file differ");
    ok(value_seed(1, 0) != value_seed(2, 0), "files differ");
    ok(value_seed(1, 1) != value_seed(2, 0) && value_seed(0, 1) != value_seed(1, 0), "neighbours differ");
}

static void test_worth(void)
{
    static const struct {
        const char *name, *head;
        size_t n;
        uint64_t size;
        bool worth;
    } rows[] = {
        {"a.jpg", "", 0, 100, false},
        {"a.JPEG", "hello", 5, 100, false},
        {"a.txt", "hello", 5, 100, true},
        {"a.txt", "", 0, 100, true},
        {"noname", "\xff\xd8\xff\xe0", 4, 100, false},
        {"noname", "\xff\xd8", 2, 100, true},
        {"a.bin", "\x1f\x8b\x08", 3, 100, false},
        {"a.bin", "PK\3\4abcd", 8, 100, false},
        {"a.pt", "PK\3\4abcd", 8, 100, true},
        {"a.bin", "RIFF0000WEBPVP8 ", 16, 100, false},
        {"a.wav", "RIFF0000WAVEfmt ", 16, 100, true},
        {"a.bin", "0000ftypisom", 12, 100, false},
        {"a.npy", "\x93NUMPY", 6, 64 << 20, true},
        {"a.npy", "\x93NUMPY", 6, (64 << 20) + 1, false},
        {".jpg", "hello", 5, 100, false},
        {"jpg", "hello", 5, 100, true},
        {"a.", "hello", 5, 100, true},
        {"", "hello", 5, 100, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ok(value_worth_trying(rows[i].name, rows[i].head, rows[i].n, rows[i].size) == rows[i].worth,
           "'%s' is %sworth it", rows[i].name, rows[i].worth ? "" : "not ");
}

int main(void)
{
    static const size_t lengths[] = {1, 15, 16, 17, 4095, 4096, 112 << 10, (128 << 10) - 1, 128 << 10};
    struct value_codec_state *codec = value_codec_create(1), *never = value_codec_create(0);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int how = 0; how < 4; how++)
            test_round_trip(codec, lengths[i], how & 1, how & 2);
    char value[VALUE_HEADER + 1000];
    fill(value + VALUE_HEADER, 1000, true);
    is_uint(value_seal(never, value, 1000, SEED, true), VALUE_HEADER + 1000, "level 0 never packs");
    test_refusals(codec, false);
    test_refusals(codec, true);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        test_blocks(codec, lengths[i]);
    test_savings(codec);
    test_seeds();
    test_worth();
    value_codec_destroy(codec);
    value_codec_destroy(never);
    value_codec_destroy(NULL);
    return done_testing();
}
