/* A tier: one RocksDB of segments. It consists of its data (stock.h), filling (rooms.h), reading (tier-read.h), and the
 * thread that stores and reclaims segments. */
#ifndef FS_STORE_TIER_H
#define FS_STORE_TIER_H

#include "fs/store/tier-folder.h"
#include "fs/store/layer.h"
#include "fs/store/rooms.h"
#include "fs/store/scrub.h"

struct tier {
    struct layer layer;        /* get is tier_read; destroy stores what is staged, and frees the tier */
    struct tier_config config; /* constant; the directory is the stock's */
    struct stock stock;
    struct tier_rooms rooms;
    struct tier_folder folder;
    struct scrub scrub;
    pthread_t thread;
    bool running;
    /* guarded by stock.lock: */
    bool stop;
    uint64_t reclaims_asked, reclaims_done;
    int reclaim_error; /* of the last reclaim */
    bool cramped;      /* a thread wants room */
    uint64_t squeezes; /* how often room was searched */
    uint64_t squeezed; /* bytes that the last search freed */
};

int tier_create(enum tier_name name, const struct tier_config *config, struct map *map, struct pool *pool,
                struct tier **tier);

int tier_flush(struct tier *t);
int tier_reclaim(struct tier *t);
uint64_t tier_make_room(struct tier *t); /* like shard_make_room */
void tier_get_status(struct tier *t, struct tier_status *status);

#endif
