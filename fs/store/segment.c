/* The table is a radix tree of two levels; its memory is touched where numbers are in use. */
#include "fs/store/segment.h"

#include "fs/store/tier.h"

#include <errno.h>
#include <stdlib.h>

enum { CHUNK = 65536 };

int segments_init(struct segments *table)
{
    table->chunk = calloc(CHUNK, sizeof *table->chunk);
    table->spare = NULL;
    return table->chunk ? 0 : -ENOMEM;
}

void segments_fini(struct segments *table)
{
    while (table->spare) {
        struct segment *s = table->spare;
        table->spare = s->next;
        free(s);
    }
    for (uint32_t i = 0; table->chunk && i < CHUNK; i++)
        free((void *)atomic_load(&table->chunk[i]));
    free((void *)table->chunk);
    table->chunk = NULL;
}

struct segment *segment_new(struct segments *table, struct tier *tier, uint32_t number, struct staging *staging,
                            struct known *known)
{
    struct segment *s = table->spare;
    if (s)
        table->spare = s->next;
    else if (!(s = calloc(1, sizeof *s)))
        return NULL;
    s->number = number;
    s->tier = tier;
    s->staging = staging;
    s->known = known;
    s->state = staging ? SEGMENT_OPEN : SEGMENT_STORED;
    s->places = s->rooms = 0;
    s->used = 0;
    s->held = s->live = s->dead = 0;
    s->live_values = 0;
    s->next = s->next_stored = NULL;
    atomic_store(&s->worn, false);
    atomic_store_explicit(&s->pins, 1, memory_order_release);
    return s;
}

void segment_free(struct segments *table, struct segment *s)
{
    known_destroy(s->known);
    s->known = NULL;
    s->next = table->spare;
    table->spare = s;
}

static struct segment *_Atomic *chunk_of(struct segments *table, uint32_t number)
{
    struct segment *_Atomic *chunk = atomic_load(&table->chunk[number / CHUNK]);
    if (chunk)
        return chunk;
    struct segment *_Atomic *made = calloc(CHUNK, sizeof *made);
    if (made && !atomic_compare_exchange_strong(&table->chunk[number / CHUNK], &chunk, made)) {
        free((void *)made);
        return chunk;
    }
    return made;
}

int segments_set(struct segments *table, uint32_t number, struct segment *s)
{
    struct segment *_Atomic *chunk = chunk_of(table, number);
    if (!chunk)
        return -ENOMEM;
    atomic_store(&chunk[number % CHUNK], s);
    return 0;
}

struct segment *segments_at(const struct segments *table, uint32_t number)
{
    struct segment *_Atomic *chunk = atomic_load_explicit(&table->chunk[number / CHUNK], memory_order_acquire);
    return chunk ? atomic_load_explicit(&chunk[number % CHUNK], memory_order_acquire) : NULL;
}

struct segment *segment_pin(const struct segments *table, uint32_t number)
{
    struct segment *s;
    while ((s = segments_at(table, number))) {
        uint32_t pins = atomic_load_explicit(&s->pins, memory_order_relaxed);
        while (pins && !atomic_compare_exchange_weak_explicit(&s->pins, &pins, pins + 1, memory_order_acquire,
                                                              memory_order_relaxed))
            ;
        if (!pins)
            continue; /* taken out of the table since: look again */
        if (s->number == number)
            return s;
        segment_unpin(s); /* the struct has become another segment */
    }
    return NULL;
}

void segment_unpin(struct segment *s)
{
    if (s && atomic_fetch_sub_explicit(&s->pins, 1, memory_order_acq_rel) == 1)
        tier_segment_free(s);
}
