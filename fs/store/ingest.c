/* The stored segment replaces the staged one in the table under the same number, so that a reader always finds one
 * of them. */
#include "fs/store/ingest.h"

#include "fs/base/log.h"
#include "fs/store/writer.h"

#include <string.h>

/* Does the map lead to the value at this place? */
static bool is_live(const struct stock *k, const struct segment *s, uint32_t place)
{
    const struct value_place *p = &s->staging->place[place];
    uint32_t first = file_in_blocks(k->map->catalog, p->file) ? place : place - p->value;
    return p->length && map_get(k->map, map_part(k->map, p->file, p->value)) == entry_make(k->name, s->number, first);
}

/* `file` stays NULL if nothing is live. */
static int write_segment(const struct stock *k, const struct segment *s, struct segment_file **file)
{
    struct segment_writer w = {.rocks = NULL};
    int error = 0;
    for (uint32_t i = 0; i < s->places && !error; i++) {
        const struct value_place *p = &s->staging->place[i];
        if (!is_live(k, s, i))
            continue;
        if (!w.rocks)
            error = writer_begin(k, s->number, &w);
        if (!error)
            error = writer_put(&w, i, p, s->staging->bytes + p->at);
    }
    if (!error && w.rocks)
        error = writer_end(&w, file);
    writer_fini(&w);
    return error;
}

/* Replace the staged segment by the stored one, or remove it. */
static int leave_staging(struct stock *k, struct segment *s, struct segment_file *file)
{
    pthread_mutex_lock(&k->lock);
    struct segment *stored = file ? stock_add(k, file) : NULL;
    if (file && !stored) {
        pthread_mutex_unlock(&k->lock);
        segment_file_close(file);
        rocks_drop(k->rocks, s->number);
        return -ENOMEM;
    }
    if (!stored)
        segments_set(&k->segments, s->number, NULL);
    segment_enter(s, SEGMENT_DRAINING);
    k->held -= s->held;
    pthread_cond_broadcast(&k->changed);
    pthread_mutex_unlock(&k->lock);
    if (stored && atomic_load(&s->worn))
        stock_wear(k, stored);
    stock_close_segment(s);
    return 0;
}

void ingest_segment(struct stock *k, struct segment *s)
{
    struct segment_file *file = NULL;
    int error = write_segment(k, s, &file);
    if (!error)
        error = leave_staging(k, s, file);
    if (!error)
        return;
    bool later = stock_may_recover(error);
    if (!later)
        stock_close(k, error);
    pthread_mutex_lock(&k->lock);
    segment_enter(s, later ? SEGMENT_SEALED : SEGMENT_STUCK);
    if (later)
        stock_rest(k, error);
    pthread_cond_broadcast(&k->changed);
    pthread_mutex_unlock(&k->lock);
    if (later)
        log_limited(LOG_LEVEL_WARNING, 5, "%s tier %s: store a segment: %s: it will be tried again",
                    tier_names[k->name], k->directory, strerror(-error));
}
