/* Composes replies to other nodes in a slot of the ring. fs/wire/ring.h describes their form. */
#include "fs/world/receive.h"
#include "fs/world/serve-inside.h"

#include <errno.h>
#include <string.h>

void reply_status(struct serves *s, const struct peer_question *q, int status)
{
    struct ring_message m = {.kind = RING_REPLY, .node = q->node, .token = q->token, .status = status};
    link_send(s->link, &m);
}

/* A payload under construction. */
struct slot_filling {
    char *slot;
    size_t room;
    bool full; /* the slot was too small */
    uint32_t length[RING_VALUES];
};

static void put_value(void *user, uint32_t i, const void *bytes, uint32_t length, bool cut)
{
    struct slot_filling *f = user;
    size_t at = f->full ? 0 : payload_begin(f->length, i);
    f->full = f->full || at + length > f->room;
    if (f->full)
        return;
    memcpy(f->slot + at, bytes, length);
    f->length[i] = length | (cut ? PAYLOAD_CUT : 0);
}

static void send_bytes(struct serves *s, const struct peer_question *q, uint32_t slot, size_t length)
{
    struct ring_message m = {
        .kind = RING_REPLY,
        .node = q->node,
        .token = q->token,
        .slot = RING_IN + slot,
        .length = (uint32_t)length,
    };
    pthread_mutex_lock(&s->lock);
    s->sending[slot] = true;
    pthread_mutex_unlock(&s->lock);
    link_send(s->link, &m);
}

struct peer_question question_of(const struct fetch_part *part)
{
    return (struct peer_question){.file = part->file,
                                  .value = part->value,
                                  .count = part->count,
                                  .flags = part->flags & ~(uint32_t)(FETCH_BLOCKS_MASK | FETCH_VERIFY),
                                  .verify = part->flags & FETCH_VERIFY,
                                  .head = fetch_head(part->flags),
                                  .tail = fetch_tail(part->flags)};
}

struct span question_values(const struct serves *s, const struct peer_question *q)
{
    uint64_t size = catalog_file(s->self->config.catalog, q->file).size;
    uint64_t begin = (uint64_t)q->value * VALUE_BYTES, end = begin + (uint64_t)q->count * VALUE_BYTES;
    return (struct span){.file = q->file, .offset = begin, .length = (uint32_t)((end < size ? end : size) - begin)};
}

/* The wanted range, without unwanted blocks. */
static struct span question_wanted(const struct serves *s, const struct peer_question *q)
{
    struct span span = question_values(s, q);
    span.offset += q->head * VALUE_BLOCK;
    span.length -= q->head * VALUE_BLOCK;
    if (q->tail) /* the last block may be shorter */
        span.length -= (q->tail - 1) * VALUE_BLOCK + (uint32_t)((span.offset + span.length - 1) % VALUE_BLOCK) + 1;
    return span;
}

static void send_slot(struct serves *s, const struct peer_question *q, uint32_t slot, struct slot_filling *f)
{
    payload_finish(f->slot, &(struct value_run){q->file, q->value, q->count}, f->length);
    send_bytes(s, q, slot, payload_begin(f->length, q->count));
    if (!(q->flags & FETCH_BEFORE))
        return;
    atomic_fetch_add(&s->self->sent_samples, q->value == 0);
    atomic_fetch_add(&s->self->sent_bytes, question_wanted(s, q).length);
}

/* Which of the extents that this node owns are stored. */
static void send_stored(struct serves *s, const struct peer_question *q, uint32_t slot)
{
    const struct self *self = s->self;
    uint64_t first = (uint64_t)q->value << 32 | q->file;
    pthread_mutex_lock(&s->lock);
    CLEANUP_WORLD struct world *w = world_get(s->world);
    pthread_mutex_unlock(&s->lock);
    struct payload_stored *p =
        payload_stored_begin(ring_slot(&s->link->ring, RING_IN + slot), first, q->count, w ? w->last.k : UINT64_MAX);
    for (uint32_t i = 0; w && i < q->count; i++) {
        uint64_t from, to;
        if (!world_keeps(w, first + i))
            continue;
        uint32_t file = extents_file(self->extents, first + i, &from, &to);
        if (store_is_stored(self->store, file, from, to))
            p->word[i / 64] |= UINT64_C(1) << i % 64;
    }
    send_bytes(s, q, slot, payload_stored_finish(p));
}

/* A piece of a layout. */
static ssize_t read_layout(const struct self *self, const struct blob_question *q, void *to, uint64_t *length)
{
    struct layout *layout;
    int error = shelf_find_key(self->shelf, self->config.catalog, q->key, &layout);
    if (error)
        return error;
    size_t n = layout_bytes(layout, q->offset, to, BLOB_PIECE, length);
    layout_close(layout);
    return (ssize_t)n;
}

/* An object other than a sample. */
static void send_blob(struct serves *s, const struct peer_question *q, uint32_t slot)
{
    const struct peers_config *c = &s->self->config;
    uint64_t key = (uint64_t)q->value << 32 | q->file, length = 0;
    uint32_t piece = q->count - 1;
    struct payload_blob *p = ring_slot(&s->link->ring, RING_IN + slot);
    const struct blob_question blob = {q->node, key, (uint64_t)piece * BLOB_PIECE};
    ssize_t n = c->blob ? c->blob(c->user, &blob, p->byte, BLOB_PIECE, &length) : -ENOENT;
    if (n < 0)
        n = read_layout(s->self, &blob, p->byte, &length);
    send_bytes(s, q, slot, payload_blob_finish(p, key, piece, n >= 0 ? length : 0, n > 0 ? (size_t)n : 0));
}

/* Length of the payload; 0: the tiers lack some of it, or it does not fit. */
static uint32_t put_part(struct serves *s, const struct fetch_part *part, char *to, size_t room)
{
    const struct peer_question q = question_of(part);
    struct slot_filling f = {.slot = to, .room = room};
    struct span wanted = question_wanted(s, &q);
    if (room < sizeof(struct payload_header) || store_stored(s->self->store, &wanted, false, put_value, &f) || f.full)
        return 0;
    payload_finish(to, &(struct value_run){q.file, q.value, q.count}, f.length);
    return (uint32_t)payload_begin(f.length, q.count);
}

/* Parts that this node lacks stay empty: the other node asks for each again, alone. */
static void send_many(struct serves *s, const struct peer_question *q, uint32_t slot)
{
    char *bytes = ring_slot(&s->link->ring, RING_IN + slot);
    uint32_t length[MANY_MOST];
    size_t at = payload_many_begin(length, 0);
    for (uint32_t i = 0; i < q->count; i++) {
        length[i] = put_part(s, &q->part[i], bytes + at, RING_SLOT - at);
        at = payload_many_begin(length, i + 1);
    }
    payload_many_finish(bytes, q->count, length);
    send_bytes(s, q, slot, at);
}

int reply_held(struct serves *s, const struct peer_question *q, uint32_t slot)
{
    if (q->flags == FETCH_STORED) {
        send_stored(s, q, slot);
        return 0;
    }
    if (q->flags == FETCH_BLOB) {
        send_blob(s, q, slot);
        return 0;
    }
    if (q->flags == FETCH_MANY) {
        send_many(s, q, slot);
        return 0;
    }
    struct slot_filling f = {.slot = ring_slot(&s->link->ring, RING_IN + slot), .room = RING_SLOT};
    struct span wanted = question_wanted(s, q);
    int error = store_stored(s->self->store, &wanted, q->verify, put_value, &f);
    if (!error)
        send_slot(s, q, slot, &f);
    return error;
}

/* Copy the next `n` bytes of an answer; they may cross its pieces. */
static void copy_bytes(char *to, size_t n, const struct answer *answer, int *piece, size_t *done)
{
    while (n) {
        const struct iovec *from = &answer->piece[*piece];
        size_t some = from->iov_len - *done < n ? from->iov_len - *done : n;
        memcpy(to, (const char *)from->iov_base + *done, some);
        to += some;
        n -= some;
        *done += some;
        if (*done == from->iov_len) {
            (*piece)++;
            *done = 0;
        }
    }
}

/* Seal a value of `raw` bytes that leaves a gap for unwanted blocks. Returns its length. */
static uint32_t seal_value(const struct catalog *c, const struct span *wanted, uint64_t value, char *to)
{
    struct value_part part = receive_part(c, wanted, value);
    uint64_t seed = value_seed(catalog_file_seed(c, wanted->file), value);
    if (!file_in_blocks(c, wanted->file) || value_part_is_whole(&part))
        return (uint32_t)value_seal(NULL, to, part.raw, seed, 0);
    uint32_t from, end;
    value_seal(NULL, to, part.raw, seed, VALUE_IN_BLOCKS);
    value_part_stored(&part, &from, &end);
    memmove(to, to + from, end - from);
    return (end - from) | PAYLOAD_CUT;
}

/* Bytes from a load have no headers yet. */
void reply_answer(struct serves *s, const struct peer_question *q, const struct answer *answer, uint32_t slot)
{
    const struct catalog *c = s->self->config.catalog;
    struct slot_filling f = {.slot = ring_slot(&s->link->ring, RING_IN + slot)};
    struct span wanted = question_wanted(s, q);
    int piece = 0;
    size_t done = 0;
    for (uint32_t i = 0; i < q->count; i++) {
        char *to = f.slot + payload_begin(f.length, i);
        copy_bytes(to + VALUE_HEADER, value_raw(c, q->file, q->value + i), answer, &piece, &done);
        f.length[i] = seal_value(c, &wanted, q->value + i, to);
    }
    send_slot(s, q, slot, &f);
}
