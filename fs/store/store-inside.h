/* The store as its own files see it: store.c puts it together; store-read.c is the way of a read, which the disk and
 * the loader come back to; store-stage.c fills it. */
#ifndef FS_STORE_STORE_INSIDE_H
#define FS_STORE_STORE_INSIDE_H

#include "fs/store/store.h"
#include "fs/wire/feed.h"

#include <stdatomic.h>

struct store {
    const struct catalog *catalog;
    struct shard *shard;
    struct layer *source; /* what is asked for the source's bytes: `origin`, or what stands before it; owns it */
    struct layer *origin;
    struct loader *loader;
    struct disk *disk; /* NULL: there is no SSD tier */
    struct stage *stage;
    struct stats *stats;
    struct store_peers peers; /* constant once anything is read or staged */
    _Atomic int64_t waiting[PLACES];
    struct feed_served *served;
    struct feed_served own_served; /* where the caller has none */
};

static inline bool store_keeps(const struct store *s, uint32_t file, uint64_t offset)
{
    return !s->peers.keeps || s->peers.keeps(s->peers.user, file, offset);
}

/* Number of waiting reads, by place. The module that currently holds a read updates it. */
static inline void store_waits(struct store *s, const struct store_read *read, enum place place)
{
    if (!read->fed)
        atomic_fetch_add_explicit(&s->waiting[place], 1, memory_order_relaxed);
    else if (!read->quiet)
        atomic_fetch_add_explicit(&s->served->waits.waiting[place], 1, memory_order_relaxed);
}

static inline void store_waits_no_more(struct store *s, const struct store_read *read, enum place place)
{
    if (!read->fed)
        atomic_fetch_sub_explicit(&s->waiting[place], 1, memory_order_relaxed);
    else if (!read->quiet)
        atomic_fetch_sub_explicit(&s->served->waits.waiting[place], 1, memory_order_relaxed);
}

/* For the loader: what the read waited for has come: it asks the tiers again, and may wait again. */
void store_resume(struct store *store, struct store_read *read);
/* For the loader: there is no room for what the read waited for. */
void store_refused(struct store *store, struct store_read *read);
/* For the disk: as disk_get would have returned. */
void store_got(struct store *store, struct store_read *read, int error);
/* The read is over. */
void store_end(struct store *store, struct store_read *read, int error);

#endif
