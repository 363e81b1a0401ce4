/* Replies between nodes: what is made is taken apart again, and nothing else is. */
#include "fs/wire/ring.h"

#include "fs/store/value.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_NUMBER = 7, VALUE = 3 };

static const uint32_t lengths[] = {VALUE_HEADER + 1, VALUE_MOST, 999, VALUE_HEADER + 16};
enum { COUNT = sizeof lengths / sizeof *lengths };

static size_t make(char *slot)
{
    for (uint32_t i = 0; i < COUNT; i++)
        memset(slot + payload_begin(lengths, i), (int)('a' + i), lengths[i]);
    payload_finish(slot, &(struct value_run){FILE_NUMBER, VALUE, COUNT}, lengths);
    return payload_begin(lengths, COUNT);
}

static void test_shared(char *slot)
{
    size_t n = make(slot);
    struct payload_value v[RING_VALUES];
    ok(!payload_is_shared(slot, n), "a server made the reply");
    payload_mark_shared(slot);
    ok(payload_is_shared(slot, n) && !payload_is_shared(slot, 3), "a courier made it");
    is_int(payload_parse(slot, n, &(struct value_run){FILE_NUMBER, VALUE, COUNT}, v), 0, "and it is the same reply");
}

static void test_right(char *slot)
{
    size_t n = make(slot);
    struct payload_value v[RING_VALUES];
    is_int(payload_parse(slot, n, &(struct value_run){FILE_NUMBER, VALUE, COUNT}, v), 0, "a reply is taken apart");
    for (int i = 0; i < COUNT; i++) {
        const char *bytes = v[i].bytes;
        ok(v[i].length == lengths[i] && bytes[0] == 'a' + i && bytes[lengths[i] - 1] == 'a' + i, "value %d is there",
           i);
        is_uint((uintptr_t)(bytes - slot) % 16, 0, "aligned");
    }
    uint32_t most[RING_VALUES];
    for (int i = 0; i < RING_VALUES; i++)
        most[i] = VALUE_MOST;
    ok(payload_begin(most, RING_VALUES) <= RING_SLOT, "the longest reply fits a slot");
    payload_finish(slot, &(struct value_run){0, 0, RING_VALUES}, most);
    is_int(payload_parse(slot, payload_begin(most, RING_VALUES), &(struct value_run){0, 0, RING_VALUES}, v), 0,
           "and is taken apart");
}

static void test_cut(char *slot)
{
    const uint32_t cut[] = {(VALUE_SUM + 4096) | PAYLOAD_CUT, 999, (VALUE_SUM + 1) | PAYLOAD_CUT};
    struct payload_value v[RING_VALUES];
    payload_finish(slot, &(struct value_run){FILE_NUMBER, VALUE, 3}, cut);
    size_t n = payload_begin(cut, 3);
    is_int(payload_parse(slot, n, &(struct value_run){FILE_NUMBER, VALUE, 3}, v), 0,
           "a reply with blocks of values is taken apart");
    ok(v[0].cut && v[0].length == VALUE_SUM + 4096 && !v[1].cut && v[2].cut && v[2].length == VALUE_SUM + 1,
       "it says which are cut");
    struct payload_header *h = (struct payload_header *)slot;
    h->length[2] = VALUE_SUM | PAYLOAD_CUT;
    is_int(payload_parse(slot, n, &(struct value_run){FILE_NUMBER, VALUE, 3}, v), -EBADMSG,
           "a block without bytes is refused");
    h->length[2] = (VALUE_MOST + 1) | PAYLOAD_CUT;
    is_int(payload_parse(slot, n, &(struct value_run){FILE_NUMBER, VALUE, 3}, v), -EBADMSG,
           "so is one that is too long");
}

static void refuse(char *slot, size_t n, uint32_t file, uint32_t value, uint32_t count, const char *why)
{
    struct payload_value v[RING_VALUES];
    is_int(payload_parse(slot, n, &(struct value_run){file, value, count}, v), -EBADMSG, "%s", why);
}

static void test_wrong(char *slot)
{
    size_t n = make(slot);
    struct payload_header *h = (struct payload_header *)slot;
    refuse(slot, n, FILE_NUMBER + 1, VALUE, COUNT, "of another file");
    refuse(slot, n, FILE_NUMBER, VALUE + 1, COUNT, "of another value");
    refuse(slot, n, FILE_NUMBER, VALUE, COUNT - 1, "of more values than were asked for");
    refuse(slot, n, FILE_NUMBER, VALUE, COUNT + 1, "of fewer");
    refuse(slot, n - 1, FILE_NUMBER, VALUE, COUNT, "cut off");
    refuse(slot, n + 16, FILE_NUMBER, VALUE, COUNT, "with something behind it");
    refuse(slot, 0, FILE_NUMBER, VALUE, COUNT, "empty");
    refuse(slot, sizeof *h, FILE_NUMBER, VALUE, COUNT, "a header alone");
    refuse(slot, (size_t)RING_SLOT + 1, FILE_NUMBER, VALUE, COUNT, "longer than a slot");
    h->count = 0;
    refuse(slot, 64, FILE_NUMBER, VALUE, 0, "of no values");
    h->count = 1000000;
    refuse(slot, n, FILE_NUMBER, VALUE, 1000000, "of a million");
    h->count = COUNT;
    h->length[1] = VALUE_HEADER;
    refuse(slot, n, FILE_NUMBER, VALUE, COUNT, "with a value that is all header");
    h->length[1] = VALUE_MOST + 1;
    refuse(slot, n, FILE_NUMBER, VALUE, COUNT, "with a value that is too long");
    h->length[1] = UINT32_MAX;
    refuse(slot, n, FILE_NUMBER, VALUE, COUNT, "and far too long");
    h->length[1] = lengths[1];
    h->magic++;
    refuse(slot, n, FILE_NUMBER, VALUE, COUNT, "not a reply at all");
}

static void test_stored(char *slot)
{
    const uint64_t first = UINT64_C(5) << 32;
    const uint32_t count = 65;
    size_t n = payload_stored_length(count);
    memset(slot, 0xff, 64);
    struct payload_stored *stored = payload_stored_begin(slot, first, count, 7);
    stored->word[1] |= 1;
    ok(payload_stored_finish(stored) == n, "of this length");
    const uint64_t *word = payload_stored_parse(slot, n, first, count, 7);
    ok(word && word[0] == 0 && word[1] == 1, "what is stored is told");
    ok(!payload_stored_parse(slot, n, first + 1, count, 7), "not of other extents");
    ok(!payload_stored_parse(slot, n, first, count - 1, 7), "nor of fewer");
    ok(!payload_stored_parse(slot, n - 8, first, count, 7), "nor cut off");
    ok(!payload_stored_parse(slot, payload_stored_length(STORED_MOST + 1), first, STORED_MOST + 1, 7),
       "nor of too many");
    ok(!payload_stored_parse(slot, n, first, count, 8), "nor for another turn");
    unsigned taken = 0;
    for (size_t bit = 0; bit < n * 8; bit++) {
        slot[bit / 8] ^= (char)(1 << bit % 8);
        taken += payload_stored_parse(slot, n, first, count, 7) != NULL;
        slot[bit / 8] ^= (char)(1 << bit % 8);
    }
    is_int(taken, 0, "nor with any bit flipped");
    ok(!payload_stored_parse(slot, make(slot), first, count, 7), "nor values");
}

static void test_blob(char *slot)
{
    static const char bytes[] = "what a node keeps";
    struct payload_blob *blob = (struct payload_blob *)slot;
    unsigned taken = 0;
    memcpy(blob->byte, bytes, sizeof bytes);
    size_t n = payload_blob_finish(slot, 7, 0, sizeof bytes, sizeof bytes);
    const struct payload_blob *p = payload_blob_parse(slot, n, 7, 0);
    ok(p && p->length == sizeof bytes && !memcmp(p->byte, bytes, sizeof bytes), "a blob");
    ok(!payload_blob_parse(slot, n, 8, 0), "not another one");
    ok(!payload_blob_parse(slot, n, 7, 1), "nor another piece");
    ok(!payload_blob_parse(slot, n - 1, 7, 0), "nor cut off");
    for (size_t bit = 0; bit < n * 8; bit++) {
        slot[bit / 8] ^= (char)(1 << bit % 8);
        taken += payload_blob_parse(slot, n, 7, 0) != NULL;
        slot[bit / 8] ^= (char)(1 << bit % 8);
    }
    is_int(taken, 0, "nor with any bit flipped");
    n = payload_blob_finish(slot, 7, 0, 0, 0);
    p = payload_blob_parse(slot, n, 7, 0);
    ok(p && p->length == 0, "that there is none can be told");
}

static void test_many(char *slot)
{
    static const uint32_t length[] = {40, 0, 16, 7};
    struct payload_part part[MANY_MOST];
    enum { MANY = sizeof length / sizeof *length };
    size_t n = payload_many_begin(length, MANY);
    memset(slot, 0, n);
    memset(slot + payload_many_begin(length, 2), 'x', length[2]);
    payload_many_finish(slot, MANY, length);
    is_int(payload_many_parse(slot, n, MANY, part), 0, "the answer to many");
    ok(part[0].length == 40 && part[1].length == 0 && part[2].length == 16 && part[3].length == 7, "of these lengths");
    ok(!memcmp(part[2].bytes, "xxxxxxxxxxxxxxxx", 16), "and bytes");
    is_int(payload_many_parse(slot, n, MANY - 1, part), -EBADMSG, "not of fewer");
    is_int(payload_many_parse(slot, n - 1, MANY, part), -EBADMSG, "nor cut off");
    is_int(payload_many_parse(slot, n + 16, MANY, part), -EBADMSG, "nor with more behind it");
    is_int(payload_many_parse(slot, sizeof(struct payload_many) - 1, MANY, part), -EBADMSG, "nor with half a header");
    ((struct payload_many *)(void *)slot)->length[1] = UINT32_MAX - 8;
    is_int(payload_many_parse(slot, n, MANY, part), -EBADMSG, "nor with a length that goes round");
    ((struct payload_many *)(void *)slot)->length[1] = 16;
    is_int(payload_many_parse(slot, n, MANY, part), -EBADMSG, "nor with parts beyond its end");
}

int main(void)
{
    char *slot = aligned_alloc(4096, RING_SLOT);
    if (!slot)
        bail_out("no memory");
    test_right(slot);
    test_shared(slot);
    test_cut(slot);
    test_wrong(slot);
    test_stored(slot);
    test_blob(slot);
    test_many(slot);
    free(slot);
    return done_testing();
}
