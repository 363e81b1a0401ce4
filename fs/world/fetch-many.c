/* Combines small reads into one question.
 *
 * A node is asked for up to SMALL_FETCHES small reads concurrently, each in its own question. Reads that arrive
 * meanwhile wait, and the next question asks for all of them that fit into one message. So a few messages fetch many
 * records even where latency is high, and a single read never waits. */
#include "fs/world/fetch-inside.h"
#include "fs/world/receive.h"

enum {
    SMALL_FETCHES = 8,      /* unanswered questions to a node from which on small reads wait */
    SMALL_BYTES = 72 << 10, /* largest answer of a small read */
    /* largest answer to one question: what a message carries without a handshake (mpi/courier-main.c) */
    MANY_BYTES = 250 << 10,
    PART_BYTES = 96, /* per part of an answer, in addition to its blocks */
};

static struct fetch_part part_of(const struct ring_message *m)
{
    return (struct fetch_part){m->file, m->value, m->count, m->flags & FETCH_BLOCKS_MASK};
}

uint32_t many_bytes(const struct fetches *f, const struct store_read *read)
{
    const struct catalog *c = f->self->config.catalog;
    struct ring_message m;
    if (read->pull || read->before || read->damaged || read->fed || read->pulled || read->span.length > SMALL_BYTES)
        return 0;
    receive_ask(c, &read->span, &m);
    uint32_t bytes = PART_BYTES - (fetch_head(m.flags) + fetch_tail(m.flags)) * (VALUE_SUM + VALUE_BLOCK);
    for (uint32_t i = 0; i < m.count; i++) {
        uint32_t raw = value_raw(c, m.file, m.value + i);
        bytes += VALUE_HEADER + raw + (raw + VALUE_BLOCK - 1) / VALUE_BLOCK * VALUE_SUM;
    }
    return bytes <= SMALL_BYTES ? bytes : 0;
}

bool many_may_go(const struct asked_peer *p, const struct store_read *read)
{
    return !read || !read->small || p->slots - p->left - p->slow < SMALL_FETCHES;
}

void many_gather(struct fetches *f, struct asked_peer *p, struct ring_message *m)
{
    struct fetch *fetch = &f->fetch[m->slot];
    struct fetch_part *part = ring_slot(&f->link->ring, m->slot);
    uint32_t bytes = sizeof(struct payload_many) + fetch->read[0]->small;
    struct store_read *next;
    if (!fetch->read[0]->small)
        return;
    part[0] = part_of(m);
    while (fetch->parts < MANY_MOST && (next = TAILQ_FIRST(&p->queue.list[false])) && next->small &&
           bytes + next->small <= MANY_BYTES) {
        struct ring_message one;
        receive_ask(f->self->config.catalog, &next->span, &one);
        fair_remove(&p->queue, next);
        f->waiting--;
        bytes += next->small;
        next->peer = fetch->node;
        part[fetch->parts] = part_of(&one);
        fetch->read[fetch->parts++] = next;
        fetch->waiting++;
    }
    if (fetch->parts == 1)
        return;
    m->file = m->value = 0;
    m->count = fetch->parts;
    m->flags = FETCH_MANY;
}

void many_complete(struct fetches *f, struct fetch *fetch, uint32_t length, struct read_list *missing)
{
    struct payload_part part[MANY_MOST];
    int error = payload_many_parse(fetch_slot(f, fetch), length, fetch->parts, part);
    if (error)
        fetch_count_bad(f, fetch->node);
    for (uint32_t i = 0; i < fetch->parts; i++) {
        struct store_read *read = fetch->read[i];
        if (!read)
            continue;
        if (error)
            store_fetched(f->self->store, read, error);
        else if (part[i].length > 0)
            fetch_complete(f, fetch, &part[i], read);
        else
            TAILQ_INSERT_TAIL(missing, read, parked);
    }
}
