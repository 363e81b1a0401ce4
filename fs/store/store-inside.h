/* The store as its own files see it: store.c puts it together; store-read.c is the way of a read, which the disk and
 * the loader come back to; store-stage.c fills it. */
#ifndef FS_STORE_STORE_INSIDE_H
#define FS_STORE_STORE_INSIDE_H

#include "fs/store/store.h"

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
    struct store_peers peers;  /* constant once anything is read or staged */
    _Atomic uint64_t fetching; /* reads that wait for peers */
};

static inline bool store_keeps(const struct store *s, uint32_t file, uint64_t offset)
{
    return !s->peers.keeps || s->peers.keeps(s->peers.user, file, offset);
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
