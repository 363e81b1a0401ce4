/* Rooms: how a tier is filled. A room is a piece of the open segment's staging, given to one filler, who comes back
 * to commit or abandon it.
 *
 * The budget is charged with the raw length when a room is given, corrected at commit by what compression saved, and
 * again when the segment's file is there and its true length known. A filler waits while every staging is taken:
 * for as long as the tier's thread stores one and does not hang at a dead disk, but not long for rooms of others, who
 * may hang at a dead source. */
#ifndef FS_STORE_ROOMS_H
#define FS_STORE_ROOMS_H

#include "fs/store/stock.h"

enum { STAGINGS = 3 }; /* the most that a tier has: one filled, one stored, one between */

struct tier_rooms {
    struct stock *stock;
    const char *folder; /* where stagings are made */
    /* stock->lock: */
    struct segment *open;
    struct staging_area *staging[STAGINGS]; /* made when first needed */
    int made, most;                         /* how many there are, and may be */
    uint64_t making;                        /* since when one is being made, without the lock; 0: none is */
    uint64_t touched;                       /* when the open segment last gave a room or got one back */
};

void rooms_init(struct tier_rooms *r, struct stock *stock, const char *folder);
void rooms_fini(struct tier_rooms *r);

int rooms_reserve(struct tier_rooms *r, uint32_t file, uint64_t offset, uint32_t length, struct room *room);
int rooms_take(struct room *room, uint32_t i, const void *bytes, uint32_t length);
void rooms_commit(struct value_codec_state *codec, struct room *room);
void rooms_abandon(struct room *room);

/* All with the lock: */
void rooms_seal(struct tier_rooms *r); /* the open segment, if there is one */
/* Seals one to which nothing came for a while, so that a crash does not cost what was read long before, and one that is
 * to get nothing more. When to look again; 0: not. */
uint64_t rooms_look(struct tier_rooms *r);
/* The oldest sealed segment that waits for nobody's room, now STORING; NULL: none. */
struct segment *rooms_next(struct tier_rooms *r);
bool rooms_have_sealed(const struct tier_rooms *r, uint32_t before); /* with a lower number, or being stored */
bool rooms_store_goes_on(const struct tier_rooms *r); /* a staging will become free without any filler's help */
int rooms_segments(const struct tier_rooms *r);       /* whose values lie in a staging alone */

#endif
