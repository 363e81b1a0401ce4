/* Extents: their numbers are dense and in order, each knows its file and its bytes, and what is dealt by their cost
 * fits into a tier. */
#include "fs/store/shard.h"
#include "tests/fs/world/worlds.h"
#include "tests/lib/tap.h"

#include <errno.h>

#define MIB ((uint64_t)1 << 20)

/* Everything about every extent of a dataset, against a plain walk over it. */
static bool all_right(const struct sizes *s)
{
    uint64_t next = 0, from, to;
    for (uint32_t file = 0; file < catalog_files(s->catalog); file++) {
        uint64_t size = catalog_file(s->catalog, file).size, at = 0;
        if (extents_first(s->extents, file) != next)
            return false;
        do {
            uint64_t end = size - at < EXTENT_BYTES ? size : at + EXTENT_BYTES;
            if (extents_file(s->extents, next, &from, &to) != file || from != at || to != end ||
                extents_at(s->extents, file, at) != next ||
                extents_at(s->extents, file, end > at ? end - 1 : at) != next ||
                extents_cost(s->extents, next) < to - from || extents_cost(s->extents, next) == 0)
                return false;
            at = end;
            next++;
        } while (at < size);
    }
    return extents_count(s->extents) == next;
}

static void test_table(void)
{
    static const uint64_t sizes[] = {
        0, 1, EXTENT_BYTES, EXTENT_BYTES + 1, 3, 10 * (uint64_t)EXTENT_BYTES, 5, (uint64_t)70 << 30, 0};
    static const uint64_t first[] = {0, 1, 2, 3, 5, 6, 16, 17, 17 + 1120};
    struct sizes s;
    sizes_begin(&s, sizes, sizeof sizes / sizeof *sizes);
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        is_uint(extents_first(s.extents, i), first[i], "file %u begins at extent %ju", i, (uintmax_t)first[i]);
    is_uint(extents_count(s.extents), 17 + 1120 + 1, "extents in all");
    ok(all_right(&s), "each has the bytes it must have");
    is_uint(extents_cost(s.extents, 0), 1, "an empty file costs as little as can be");
    sizes_end(&s);
    sizes_begin(&s, NULL, 0);
    is_uint(extents_count(s.extents), 0, "a dataset without files has none");
    sizes_end(&s);
    extents_destroy(NULL);
}

static void test_random(void)
{
    uint64_t random = 1;
    unsigned wrong = 0;
    for (int round = 0; round < 200; round++) {
        uint64_t size[100];
        uint32_t files = (uint32_t)random_below(&random, 100) + 1;
        for (uint32_t i = 0; i < files; i++)
            size[i] = random_below(&random, 3) ? random_below(&random, 1 << 20) : random_below(&random, 1000 * MIB);
        struct sizes s;
        sizes_begin(&s, size, files);
        wrong += !all_right(&s);
        sizes_end(&s);
    }
    is_uint(wrong, 0, "200 random datasets are cut as they must be");
}

static void test_cost(void)
{
    static const uint64_t size[] = {1, VALUE_BYTES + 1, PIECE_BYTES, PIECE_BYTES + 1, 3 * (uint64_t)EXTENT_BYTES};
    struct sizes s;
    sizes_begin(&s, size, sizeof size / sizeof *size);
    for (uint64_t e = 0; e < extents_count(s.extents); e++) {
        uint64_t from, to;
        uint32_t file = extents_file(s.extents, e, &from, &to);
        uint64_t values = (to - from + VALUE_BYTES - 1) / VALUE_BYTES,
                 taken = to - from + values * (VALUE_HEADER + VALUE_COST);
        if (catalog_file(s.catalog, file).size > PIECE_BYTES)
            taken += value_sums(to - from);
        ok(extents_cost(s.extents, e) >= taken, "extent %ju costs at least what it takes: %ju and %ju", (uintmax_t)e,
           (uintmax_t)extents_cost(s.extents, e), (uintmax_t)taken);
    }
    sizes_end(&s);
}

static void test_room(void)
{
    static const uint64_t small[] = {100, 2000}, large[] = {100, 300 * MIB};
    struct sizes s;
    sizes_begin(&s, small, 2);
    is_uint(extents_room(s.extents, 0), 0, "no room in a tier of nothing");
    is_uint(extents_room(s.extents, 4096), 0, "nor in a tiny one");
    uint64_t room = extents_room(s.extents, 1024 * MIB);
    ok(room < 1024 * MIB && room > 1023 * MIB, "nearly all of a large one");
    sizes_end(&s);
    sizes_begin(&s, large, 2);
    room = extents_room(s.extents, 1024 * MIB);
    ok(room < 1020 * MIB && room > 1018 * MIB, "except for a piece, where files have pieces that large");
    unsigned more = 0;
    for (uint64_t capacity = 0; capacity < 300 * MIB; capacity += 123457)
        more += extents_room(s.extents, capacity) > capacity;
    is_uint(more, 0, "never more than there is");
    sizes_end(&s);
}

/* A window of extents, for a question about each part of them. */
static void test_run(void)
{
    static const uint64_t size[] = {0, 1, PIECE_BYTES, PIECE_BYTES + 1, EXTENT_BYTES, 3 * (uint64_t)EXTENT_BYTES, 5};
    struct sizes s;
    sizes_begin(&s, size, sizeof size / sizeof *size);
    is_uint(extents_run(s.extents, 0, 100, 3), 3, "a whole file is one part");
    is_uint(extents_run(s.extents, 0, 2, 3), 2, "no more than are wanted");
    is_uint(extents_run(s.extents, 0, 100, 3 + 32), 3, "a larger file has one for each value");
    is_uint(extents_run(s.extents, 0, 100, 3 + 33), 4, "with the last one");
    is_uint(extents_run(s.extents, 4, 100, 1), 1, "there is one at least");
    is_uint(extents_run(s.extents, 4, 100, 3 * 512), 3, "or as many as there is room for");
    is_uint(extents_run(s.extents, 4, 100, 10000), 5, "but none behind the last one");
    is_uint(extents_run(s.extents, 9, 100, 10000), 0, "where there is nothing");
    sizes_end(&s);
}

int main(void)
{
    test_table();
    test_random();
    test_cost();
    test_room();
    test_run();
    return done_testing();
}
