/* Replies between nodes: composed in a slot, parsed by the asking node. ring.h describes their form. */
#include "fs/base/hash.h"
#include "fs/wire/ring.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

enum {
    PAYLOAD_MAGIC = 0x6c617664,
    STORED_MAGIC = 0x74737664,
    MANY_MAGIC = 0x6e6d7664,
    BLOB_MAGIC = 0x626c7664,
    ALIGN = 16,
};

_Static_assert(sizeof(struct payload_stored) + STORED_MOST / 8 <= RING_SLOT, "it fits into a slot");

static size_t align_value(size_t n)
{
    return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

void payload_mark_shared(void *slot)
{
    uint32_t magic;
    memcpy(&magic, slot, sizeof magic);
    magic |= PAYLOAD_SHARED;
    memcpy(slot, &magic, sizeof magic);
}

bool payload_is_shared(const void *bytes, size_t n)
{
    uint32_t magic = 0;
    if (n >= sizeof magic)
        memcpy(&magic, bytes, sizeof magic);
    return magic & PAYLOAD_SHARED;
}

size_t payload_begin(const uint32_t *length, uint32_t count)
{
    size_t at = align_value(sizeof(struct payload_header));
    for (uint32_t i = 0; i < count; i++)
        at += align_value(length[i] & ~PAYLOAD_CUT);
    return at;
}

void payload_finish(void *slot, const struct value_run *run, const uint32_t *length)
{
    struct payload_header h = {.magic = PAYLOAD_MAGIC, .file = run->file, .value = run->first, .count = run->count};
    memcpy(h.length, length, run->count * sizeof *length);
    memcpy(slot, &h, sizeof h);
}

int payload_parse(const void *bytes, size_t n, const struct value_run *run, struct payload_value values[RING_VALUES])
{
    struct payload_header h;
    uint32_t count = run->count;
    if (n < sizeof h || n > RING_SLOT)
        return -EBADMSG;
    memcpy(&h, bytes, sizeof h);
    if ((h.magic & ~PAYLOAD_SHARED) != PAYLOAD_MAGIC || h.file != run->file || h.value != run->first ||
        h.count != count || !count || count > RING_VALUES)
        return -EBADMSG;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t length = h.length[i] & ~PAYLOAD_CUT;
        if (length <= (h.length[i] & PAYLOAD_CUT ? VALUE_SUM : VALUE_HEADER) || length > VALUE_MOST)
            return -EBADMSG;
    }
    if (payload_begin(h.length, count) != n)
        return -EBADMSG;
    for (uint32_t i = 0; i < count; i++)
        values[i] = (struct payload_value){.bytes = (const char *)bytes + payload_begin(h.length, i),
                                           .length = h.length[i] & ~PAYLOAD_CUT,
                                           .cut = h.length[i] & PAYLOAD_CUT};
    return 0;
}

size_t payload_many_begin(const uint32_t *length, uint32_t i)
{
    size_t at = align_value(sizeof(struct payload_many));
    while (i > 0)
        at += align_value(length[--i]);
    return at;
}

void payload_many_finish(void *slot, uint32_t count, const uint32_t *length)
{
    struct payload_many m = {.magic = MANY_MAGIC, .count = count};
    memcpy(m.length, length, count * sizeof *length);
    memcpy(slot, &m, sizeof m);
}

int payload_many_parse(const void *bytes, size_t n, uint32_t count, struct payload_part part[MANY_MOST])
{
    struct payload_many m;
    if (n < sizeof m || n > RING_SLOT)
        return -EBADMSG;
    memcpy(&m, bytes, sizeof m);
    if ((m.magic & ~PAYLOAD_SHARED) != MANY_MAGIC || m.count != count || count > MANY_MOST)
        return -EBADMSG;
    size_t at = payload_many_begin(NULL, 0);
    for (uint32_t i = 0; i < count; i++) {
        if (m.length[i] > n || at > n - m.length[i])
            return -EBADMSG;
        part[i] = (struct payload_part){(const char *)bytes + at, m.length[i]};
        at += align_value(m.length[i]);
    }
    return at == n ? 0 : -EBADMSG;
}

/* For a payload whose header has `field` bytes before its sum. */
static uint64_t sum_payload(const void *bytes, size_t n, size_t field)
{
    const char *behind = (const char *)bytes + field + sizeof(uint64_t);
    return hash64(behind, n - field - sizeof(uint64_t), hash64(bytes, field, n));
}

size_t payload_stored_length(uint32_t count)
{
    return sizeof(struct payload_stored) + (count + 63) / 64 * sizeof(uint64_t);
}

static uint64_t sum_stored(const struct payload_stored *p)
{
    return sum_payload(p, payload_stored_length(p->count), offsetof(struct payload_stored, sum));
}

struct payload_stored *payload_stored_begin(void *slot, uint64_t first, uint32_t count, uint64_t k)
{
    struct payload_stored *p = slot;
    memset(p, 0, payload_stored_length(count));
    *p = (struct payload_stored){.magic = STORED_MAGIC, .count = count, .first = first, .k = k};
    return p;
}

size_t payload_stored_finish(struct payload_stored *p)
{
    p->sum = sum_stored(p);
    return payload_stored_length(p->count);
}

const uint64_t *payload_stored_parse(const void *bytes, size_t n, uint64_t first, uint32_t count, uint64_t k)
{
    const struct payload_stored *p = bytes;
    bool right = count <= STORED_MOST && n == payload_stored_length(count) && p->magic == STORED_MAGIC &&
                 p->count == count && p->first == first && p->k == k && p->sum == sum_stored(p);
    return right ? p->word : NULL;
}

static uint64_t sum_blob(const struct payload_blob *p, size_t n)
{
    return sum_payload(p, n, offsetof(struct payload_blob, sum));
}

size_t payload_blob_finish(void *slot, uint64_t key, uint32_t piece, uint64_t length, size_t n)
{
    struct payload_blob *p = slot;
    n += sizeof *p;
    *p = (struct payload_blob){.magic = BLOB_MAGIC, .piece = piece, .key = key, .length = length};
    p->sum = sum_blob(p, n);
    return n;
}

const struct payload_blob *payload_blob_parse(const void *bytes, size_t n, uint64_t key, uint32_t piece)
{
    const struct payload_blob *p = bytes;
    uint64_t from = (uint64_t)piece * BLOB_PIECE;
    if (n < sizeof *p || p->magic != BLOB_MAGIC || p->piece != piece || p->key != key ||
        (p->length < from && p->length > 0))
        return NULL;
    uint64_t rest = p->length > 0 ? p->length - from : 0;
    bool right = n == sizeof *p + (rest < BLOB_PIECE ? rest : BLOB_PIECE) && p->sum == sum_blob(p, n);
    return right ? p : NULL;
}
