/* How many bytes the feeder may be ahead: as many as the page cache holds until they are read. Pure.
 *
 * Where memory is short, the kernel drops fed pages before the loader reads them, and the bytes come from the source
 * twice. The sign of it is a READ by another process of a file whose READs for the feeder were answered and that nobody
 * was seen to read. Then:
 *
 *   1. When more than a sixteenth of the room was lost, three quarters of the room go.
 *   2. Losses do not count until what was ahead at that moment has been read: all of it may be lost.
 *   3. A 64th of each byte that loaders read is added to the room, and taken from what was lost.
 *   4. Below HEADROOM_LEAST, or an eighth of the most, nothing is fed.
 *
 * So about three percent of all bytes at most are read twice, also where no window survives. */
#ifndef FS_FEED_HEADROOM_H
#define FS_FEED_HEADROOM_H

#include <stdbool.h>
#include <stdint.h>

enum { HEADROOM_LEAST = 1 << 20 };

struct headroom {
    uint64_t most;  /* the mount's feed= */
    uint64_t now;   /* as rules 1 and 3 left it */
    uint64_t lost;  /* bytes, since the room last shrank */
    uint64_t drain; /* bytes to be read until losses count again */
    uint8_t *state; /* of each file: enum headroom_state in headroom.c */
    uint32_t files;
};

int headroom_init(struct headroom *room, uint64_t most, uint32_t files); /* -ENOMEM */
void headroom_fini(struct headroom *room);
uint64_t headroom_bytes(const struct headroom *room); /* that windows may be ahead together */

/* The feeder asks for all of a file whose reads are seen. */
void headroom_feed(struct headroom *room, uint32_t file);
/* A plan has begun. What was fed for an earlier one may have been dropped long ago, and the least is tried again. */
void headroom_begin(struct headroom *room);
/* A READ was answered: one of the feeder's, or another. `ahead`: bytes that windows are ahead. */
void headroom_answer(struct headroom *room, uint32_t file, uint64_t bytes, bool fed, uint64_t ahead);
/* A file that has these bytes was seen to be read. All answers from before are known. */
void headroom_read(struct headroom *room, uint32_t file, uint64_t bytes);

#endif
