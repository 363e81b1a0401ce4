/* Replies between nodes: made in a slot, taken apart by the node that asked. See ring.h for their form. */
#include "fs/wire/ring.h"

#include <errno.h>
#include <string.h>

enum { PAYLOAD_MAGIC = 0x6c617664, STORED_MAGIC = 0x74737664, BLOB_MAGIC = 0x626c7664, ALIGN = 16 };

_Static_assert(sizeof(struct payload_stored) + STORED_MOST / 8 <= RING_SLOT, "it fits into a slot");

static size_t align_value(size_t n)
{
    return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

size_t payload_begin(const uint32_t *length, uint32_t count)
{
    size_t at = align_value(sizeof(struct payload_header));
    for (uint32_t i = 0; i < count; i++)
        at += align_value(length[i]);
    return at;
}

void payload_finish(void *slot, uint32_t file, uint32_t value, uint32_t count, const uint32_t *length)
{
    struct payload_header h = {.magic = PAYLOAD_MAGIC, .file = file, .value = value, .count = count};
    memcpy(h.length, length, count * sizeof *length);
    memcpy(slot, &h, sizeof h);
}

int payload_parse(const void *bytes, size_t n, uint32_t file, uint32_t value, uint32_t count,
                  struct payload_value values[RING_VALUES])
{
    struct payload_header h;
    if (n < sizeof h || n > RING_SLOT)
        return -EBADMSG;
    memcpy(&h, bytes, sizeof h);
    if (h.magic != PAYLOAD_MAGIC || h.file != file || h.value != value || h.count != count || !count ||
        count > RING_VALUES)
        return -EBADMSG;
    for (uint32_t i = 0; i < count; i++)
        if (h.length[i] <= VALUE_HEADER || h.length[i] > VALUE_MOST)
            return -EBADMSG;
    if (payload_begin(h.length, count) != n)
        return -EBADMSG;
    for (uint32_t i = 0; i < count; i++)
        values[i] = (struct payload_value){(const char *)bytes + payload_begin(h.length, i), h.length[i]};
    return 0;
}

size_t payload_stored_length(uint32_t count)
{
    return sizeof(struct payload_stored) + (count + 63) / 64 * sizeof(uint64_t);
}

struct payload_stored *payload_stored_begin(void *slot, uint64_t first, uint32_t count, uint64_t k)
{
    struct payload_stored *p = slot;
    memset(p, 0, payload_stored_length(count));
    *p = (struct payload_stored){.magic = STORED_MAGIC, .count = count, .first = first, .k = k};
    return p;
}

const uint64_t *payload_stored_parse(const void *bytes, size_t n, uint64_t first, uint32_t count, uint64_t k)
{
    const struct payload_stored *p = bytes;
    bool right = count <= STORED_MOST && n == payload_stored_length(count) && p->magic == STORED_MAGIC &&
                 p->count == count && p->first == first && p->k == k;
    return right ? p->word : NULL;
}

struct payload_blob *payload_blob_begin(void *slot, uint64_t key, uint32_t piece, uint64_t length)
{
    struct payload_blob *p = slot;
    *p = (struct payload_blob){.magic = BLOB_MAGIC, .piece = piece, .key = key, .length = length};
    return p;
}

const struct payload_blob *payload_blob_parse(const void *bytes, size_t n, uint64_t key, uint32_t piece)
{
    const struct payload_blob *p = bytes;
    uint64_t from = (uint64_t)piece * BLOB_PIECE;
    if (n < sizeof *p || p->magic != BLOB_MAGIC || p->piece != piece || p->key != key ||
        (p->length < from && p->length > 0))
        return NULL;
    uint64_t rest = p->length > 0 ? p->length - from : 0;
    return n == sizeof *p + (rest < BLOB_PIECE ? rest : BLOB_PIECE) ? p : NULL;
}
