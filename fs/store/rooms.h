/* Rooms: how a tier is filled. A room is a piece of the open segment's staging. One filler gets it, and later
 * commits or abandons it.
 *
 * The budget is charged with the raw length when a room is given. It is corrected at the commit by what compression
 * saved, and again when the segment's file has its final length. If all stagings are in use, a filler waits: as
 * long as the tier's thread is storing one on a disk that works, but only briefly for rooms of other fillers, whose
 * source may hang. */
#ifndef FS_STORE_ROOMS_H
#define FS_STORE_ROOMS_H

#include "fs/store/stock.h"

enum { STAGINGS = 3 }; /* maximum per tier: one being filled, one being stored, one spare */

struct tier_rooms {
    struct stock *stock;
    const char *folder; /* directory of the stagings */
    /* guarded by stock->lock: */
    struct segment *open;
    struct staging_area *staging[STAGINGS]; /* created when first needed */
    int made, most;                         /* number that exist; maximum */
    uint64_t making;                        /* when a thread began to create one, without the lock; 0: none does */
    uint64_t touched;                       /* when the open segment last gave a room or got one back */
};

void rooms_init(struct tier_rooms *r, struct stock *stock, const char *folder);
void rooms_fini(struct tier_rooms *r);

int rooms_reserve(struct tier_rooms *r, uint32_t file, uint64_t offset, uint32_t length, struct room *room);
int rooms_take(struct room *room, uint32_t i, const void *bytes, uint32_t length);
void rooms_commit(struct value_codec_state *codec, struct room *room);
void rooms_abandon(struct room *room);

/* The caller holds the lock. */
void rooms_seal(struct tier_rooms *r); /* seals the open segment, if there is one */
/* Seals the open segment if nothing was added for a while, so that a crash does not lose old data, or if nothing more
 * will be added. Returns when to look again; 0: no need. */
uint64_t rooms_look(struct tier_rooms *r);
/* The oldest sealed segment without open rooms, now STORING; NULL: none. */
struct segment *rooms_next(struct tier_rooms *r);
/* is a segment with a lower number sealed or being stored? */
bool rooms_have_sealed(const struct tier_rooms *r, uint32_t before);
bool rooms_store_goes_on(const struct tier_rooms *r); /* will a staging become free without help of a filler? */
int rooms_segments(const struct tier_rooms *r);       /* number of segments whose values are only in a staging */

#endif
