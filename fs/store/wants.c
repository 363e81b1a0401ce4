/* A small file is one part and one load. Of a large file, a reader loads the missing parts that it touches. Only a read
 * that begins exactly where an earlier load ended also loads the rest of the piece ahead. (It is not enough that the
 * previous part is cached: in a half-filled shard, every second random read would load a whole piece.) */
#include "fs/store/wants.h"

#include "fs/store/shard.h"

#include <errno.h>
#include <stdlib.h>

void wants_init(struct wants *w, const struct catalog *catalog, const struct shard *shard, const struct doubts *doubts)
{
    w->catalog = catalog;
    w->shard = shard;
    w->doubts = doubts;
    load_queue_init(&w->urgent);
    load_queue_init(&w->fed);
    load_queue_init(&w->later);
}

void wants_fini(struct wants *w)
{
    struct load *load;
    while ((load = load_queue_take(&w->urgent)) || (load = load_queue_take(&w->fed)) ||
           (load = load_queue_take(&w->later))) {
        loads_remove(load);
        free(load);
    }
}

void wants_queue(struct wants *w, struct load *load)
{
    const struct store_read *read = TAILQ_FIRST(&load->waiting);
    struct load_queue *queue = read ? &w->fed : &w->later;
    for (; read; read = TAILQ_NEXT(read, parked))
        if (!read->fed)
            queue = &w->urgent;
    load_queue_add(queue, load);
}

static bool is_held(struct wants *w, uint32_t file, uint64_t offset)
{
    return shard_where(w->shard, file, offset) != TIERS && !doubts_hide(w->doubts, file);
}

static bool is_missing(struct wants *w, uint32_t file, uint64_t offset)
{
    return !loads_at(&w->loads, file, offset) && !is_held(w, file, offset);
}

static uint64_t piece_end(struct wants *w, uint32_t file, uint64_t offset)
{
    uint64_t size = catalog_file(w->catalog, file).size;
    uint64_t end = (offset / PIECE_BYTES + 1) * PIECE_BYTES;
    return end < size ? end : size;
}

static uint64_t part_end(struct wants *w, uint32_t file, uint64_t offset)
{
    uint64_t from, to;
    shard_part(w->shard, file, offset, &from, &to);
    return to;
}

/* Add a load of missing parts from `at`, which is missing, up to the first that is not, or to `end`. */
static struct load *add_run(struct wants *w, uint32_t file, uint64_t at, uint64_t end, struct load_queue *queue)
{
    uint64_t from, to;
    shard_part(w->shard, file, at, &from, &to);
    uint64_t piece = piece_end(w, file, at);
    while (to < end && to < piece && is_missing(w, file, to))
        to = part_end(w, file, to);
    struct load *load = loads_add(&w->loads, file, from, (uint32_t)(to - from));
    if (load)
        load_queue_add(queue, load);
    return load;
}

static bool is_large(struct wants *w, uint32_t file)
{
    return catalog_file(w->catalog, file).size > PIECE_BYTES;
}

/* The feeder itself bounds how much is fed. */
static void load_ahead(struct wants *w, uint32_t file, uint64_t at, bool fed)
{
    if (!fed && w->later.count >= w->most_ahead)
        return;
    if (at == catalog_file(w->catalog, file).size || !is_missing(w, file, at))
        return;
    struct load *load = add_run(w, file, at, piece_end(w, file, at), fed ? &w->fed : &w->later);
    if (load)
        recent_add(&w->recent, file, at, at + load->length);
}

int wants_read(struct wants *w, const struct store_read *read, bool ahead, struct load **first)
{
    const struct span *span = &read->span;
    struct load_queue *queue = read->fed ? &w->fed : &w->urgent;
    uint64_t end = span->offset + span->length, loaded = 0;
    bool sequence = false;
    *first = NULL;
    for (uint64_t at = span->offset; at < end; at = part_end(w, span->file, at)) {
        struct load *load = loads_at(&w->loads, span->file, at);
        if (!load && !is_held(w, span->file, at)) {
            load = add_run(w, span->file, at, end, queue);
            if (!load)
                return -ENOMEM;
            if (!loaded && span->offset <= load->offset)
                sequence = recent_follows(&w->recent, span->file, load->offset);
            loaded = load->offset + load->length;
            if (is_large(w, span->file))
                recent_add(&w->recent, span->file, load->offset, loaded);
        }
        if (!load)
            continue;
        load->pulled = false;
        if (load->queued && load->queued != queue && load->queued != &w->urgent)
            load_queue_add(queue, load);
        if (!*first)
            *first = load;
    }
    if (sequence && ahead)
        load_ahead(w, span->file, loaded, read->fed);
    return 0;
}

int wants_piece(struct wants *w, enum load_wish wish, uint32_t number, uint32_t file, uint64_t offset, uint64_t *held)
{
    uint64_t end = piece_end(w, file, offset);
    int notices = 0;
    for (uint64_t at = offset; at < end; at = part_end(w, file, at)) {
        struct load *load = loads_at(&w->loads, file, at);
        if (!load && is_held(w, file, at)) {
            *held += part_end(w, file, at) - at;
            continue;
        }
        if (!number)
            continue;
        if (!load && (load = add_run(w, file, at, end, &w->later)))
            load->pulled = true;
        if (!load)
            return notices ? notices : -ENOMEM;
        load->pulled &= wish == LOAD_PULL;
        notices += load->told[wish] != number;
        load->told[wish] = number;
    }
    return notices;
}

static void load_drop(struct load *load)
{
    load_queue_leave(load);
    loads_remove(load);
    free(load);
}

static bool is_wished(const struct load *load)
{
    return load->told[LOAD_STAGE] || load->told[LOAD_PULL];
}

bool wants_abandon(struct wants *w, struct store_read *read)
{
    uint64_t end = read->span.offset + read->span.length;
    for (uint64_t at = read->span.offset; at < end; at = part_end(w, read->span.file, at)) {
        struct load *load = loads_at(&w->loads, read->span.file, at);
        if (!load || !read_list_remove(&load->waiting, read))
            continue;
        if (load->queued && TAILQ_EMPTY(&load->waiting) && !is_wished(load))
            load_drop(load);
        return true;
    }
    return false;
}

void wants_forget(struct wants *w, enum load_wish wish, uint32_t number)
{
    struct load *load, *next;
    for (load = TAILQ_FIRST(&w->later.loads); load; load = next) {
        next = TAILQ_NEXT(load, same_queue);
        if (load->told[wish] != number)
            continue;
        load->told[wish] = 0;
        if (!is_wished(load))
            load_drop(load);
    }
}
