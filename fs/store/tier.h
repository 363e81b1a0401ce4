/* A tier: one RocksDB of segments, put together of what it has (stock.h), how it is filled (rooms.h) and read
 * (tier-read.h), and the thread that stores and reclaims segments. */
#ifndef FS_STORE_TIER_H
#define FS_STORE_TIER_H

#include "fs/store/tier-folder.h"
#include "fs/store/layer.h"
#include "fs/store/rooms.h"

struct tier {
    struct layer layer;        /* its get is tier_read; its destroy stores what is staged, and frees the tier */
    struct tier_config config; /* constant; its directory is the stock's */
    struct stock stock;
    struct tier_rooms rooms;
    struct tier_folder folder;
    pthread_t thread;
    bool running;
    /* stock.lock: */
    bool stop;
    uint64_t reclaims_asked, reclaims_done;
    int reclaim_error; /* of the last one */
    bool cramped;      /* some want room, */
    uint64_t squeezes; /* so often it was looked for, */
    uint64_t squeezed; /* and how many bytes the last one freed */
};

int tier_create(enum tier_name name, const struct tier_config *config, struct map *map, struct pool *pool,
                struct tier **tier);

int tier_flush(struct tier *t);
int tier_reclaim(struct tier *t);
uint64_t tier_make_room(struct tier *t); /* as shard_make_room */
void tier_get_status(struct tier *t, struct tier_status *status);

#endif
