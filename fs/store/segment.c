/* The table is a radix tree with two levels. Memory is used only for numbers in use. */
#include "fs/store/segment.h"

#include "fs/base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 65536 };

int segments_init(struct segments *table, struct stock *stock, bool many_readers)
{
    long cores = many_readers ? sysconf(_SC_NPROCESSORS_ONLN) : 1;
    *table = (struct segments){
        .chunk = calloc(CHUNK, sizeof *table->chunk),
        .stock = stock,
        .stripes = cores < 2 ? 1 : (unsigned)(cores < THREAD_STRIPES ? cores : THREAD_STRIPES),
    };
    TAILQ_INIT(&table->spare);
    return table->chunk ? 0 : -ENOMEM;
}

void segments_free_all(struct segment_list *list)
{
    struct segment *s;
    while ((s = TAILQ_FIRST(list))) {
        TAILQ_REMOVE(list, s, link);
        segment_file_close(s->file);
        free(s);
    }
}

void segments_fini(struct segments *table)
{
    segments_free_all(&table->spare);
    for (uint32_t i = 0; i < table->chunks; i++)
        free((void *)atomic_load(&table->chunk[i]));
    free((void *)table->chunk);
    table->chunk = NULL;
}

int segments_set(struct segments *table, uint32_t number, struct segment *s)
{
    struct segment *_Atomic *chunk = atomic_load(&table->chunk[number / CHUNK]);
    if (!chunk) {
        chunk = calloc(CHUNK, sizeof *chunk);
        if (!chunk)
            return -ENOMEM;
        atomic_store(&table->chunk[number / CHUNK], chunk);
        if (table->chunks <= number / CHUNK)
            table->chunks = number / CHUNK + 1;
    }
    atomic_store(&chunk[number % CHUNK], s);
    return 0;
}

struct segment *segments_at(const struct segments *table, uint32_t number)
{
    struct segment *_Atomic *chunk = atomic_load_explicit(&table->chunk[number / CHUNK], memory_order_acquire);
    return chunk ? atomic_load_explicit(&chunk[number % CHUNK], memory_order_acquire) : NULL;
}

static struct segment *segment_make(const struct segments *table)
{
    size_t bytes = sizeof(struct segment) + table->stripes * sizeof(struct pins);
    struct segment *s = aligned_alloc(CACHE_LINE, bytes);
    if (!s)
        return NULL;
    memset(s, 0, bytes);
    s->stock = table->stock;
    s->stripes = table->stripes;
    return s;
}

struct segment *segment_new(struct segments *table, uint32_t number, struct staging_area *staging,
                            struct segment_file *file)
{
    struct segment *s = TAILQ_FIRST(&table->spare);
    if (s)
        TAILQ_REMOVE(&table->spare, s, link);
    else if (!(s = segment_make(table)))
        return NULL;
    s->number = number;
    s->staging = staging;
    s->file = file;
    s->places = s->rooms = 0;
    s->used = 0;
    s->held = s->live = s->dead = 0;
    s->live_values = 0;
    s->left = false;
    atomic_store(&s->worn, false);
    atomic_store(&s->closed, false);
    segment_enter(s, staging ? SEGMENT_OPEN : SEGMENT_STORED);
    if (segments_set(table, number, s) == 0)
        return s;
    s->file = NULL; /* the caller still owns it */
    segment_free(table, s);
    return NULL;
}

void segment_free(struct segments *table, struct segment *s)
{
    segment_file_close(s->file);
    s->file = NULL;
    TAILQ_INSERT_HEAD(&table->spare, s, link);
}

/* Asserts the table in segment.h. */
static void segment_check(const struct segment *s)
{
    bool staged = s->state <= SEGMENT_DRAINING;
    check(staged == (s->staging != NULL) && staged == (s->file == NULL));
    check(s->rooms == 0 || s->state == SEGMENT_OPEN || s->state == SEGMENT_SEALED);
    check(s->rooms <= s->places && s->places <= SEGMENT_PLACES);
    check(staged ? s->used <= s->staging->size && s->live == 0 && s->dead == 0 : s->places == 0 && s->used == 0);
    check(s->dead <= s->held && !s->left && !s->closed);
}

void segment_enter(struct segment *s, enum segment_state state)
{
    s->state = state;
    segment_check(s);
}

/* A reader writes its pin, then checks whether the segment is closed. The closing thread does the reverse, so that at
 * least one of them sees the other. The struct may have been reused for another segment before. */
bool segment_hold(struct segment *s, uint32_t number)
{
    atomic_fetch_add(&s->pins[thread_number() % s->stripes].n, 1);
    return !atomic_load(&s->closed) && s->number == number;
}

bool segment_release(struct segment *s)
{
    atomic_fetch_sub(&s->pins[thread_number() % s->stripes].n, 1);
    return atomic_load(&s->closed);
}

bool segment_leave(struct segment *s)
{
    int64_t pins = 0;
    for (unsigned i = 0; i < s->stripes; i++)
        pins += atomic_load(&s->pins[i].n);
    bool last = atomic_load(&s->closed) && !s->left && pins == 0;
    s->left |= last;
    return last;
}
