/* Shared by the files of the store: store.c assembles it; store-read.c runs reads, to which disk and loader return;
 * store-stage.c fills it. */
#ifndef FS_STORE_STORE_INSIDE_H
#define FS_STORE_STORE_INSIDE_H

#include "fs/store/doubts.h"
#include "fs/store/mode-round.h"
#include "fs/store/read.h"
#include "fs/store/shard.h"
#include "fs/wire/feed.h"

#include <stdatomic.h>

struct store {
    const struct catalog *catalog;
    const struct catalog *original; /* of the source, if files differ from it */
    struct doubts doubts;
    struct modes *modes;              /* NULL: only the mount's owner has access */
    struct mode_round *_Atomic round; /* NULL: not started */
    int root;                         /* of the source */
    struct shard *shard;
    struct layer *source; /* the layer that is asked for the source's bytes: `origin`, or one in front of it; owned */
    struct layer *origin;
    struct loader *loader;
    struct disk *disk; /* NULL: there is no SSD tier */
    struct stage *stage;
    struct stats *stats;
    struct store_peers peers; /* constant once anything is read or staged */
    _Atomic int64_t waiting[PLACES];
    struct feed_served *served;
    struct feed_served own_served; /* used if the caller has none */
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

/* Called by the loader: the bytes have arrived. The read asks the tiers again, and may have to wait again. */
void store_resume(struct store *store, struct store_read *read);
/* Called by the loader: there is no room. */
void store_refused(struct store *store, struct store_read *read);
/* Called by the disk; `error` is what disk_get would have returned. */
void store_got(struct store *store, struct store_read *read, int error);
/* The read has ended. */
void store_end(struct store *store, struct store_read *read, int error);

/* store-stage.c */
int stage_create(struct store *store, struct stage **stage);
void stage_join(struct stage *stage);    /* stops, and waits until it no longer calls the loader; NULL is allowed */
void stage_destroy(struct stage *stage); /* only when the loader no longer calls it */

/* The loader reports: a load of stage `number` has ended. -ENOSPC: no tier had room, and nothing was cached. */
void stage_loaded(struct stage *stage, uint32_t number, uint32_t file, uint32_t length, int error);

#endif
