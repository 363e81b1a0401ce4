/* How many bytes the feeder may be ahead: as many as the page cache keeps until they are read. Pure.
 *
 * If memory is short, the kernel drops fed pages before the loader reads them, and the bytes come from the source
 * twice. The sign is a READ by another process of a file whose READs for the feeder were answered and that nobody was
 * seen to read. Then:
 *
 *   1. When more than a sixteenth of the room was lost, the room shrinks to a quarter.
 *   2. Losses do not count until everything that was ahead at that moment has been read: all of it may be lost.
 *   3. A 64th of each byte that loaders read is added to the room, and subtracted from what was lost.
 *   4. Below HEADROOM_LEAST, or an eighth of `most`, nothing is fed.
 *
 * So at most about 3 percent of all bytes are read twice, even if no window survives. */
#ifndef FS_FEED_HEADROOM_H
#define FS_FEED_HEADROOM_H

#include <stdbool.h>
#include <stdint.h>

enum { HEADROOM_LEAST = 1 << 20 };

struct headroom {
    uint64_t most;  /* of the mount's feed= */
    uint64_t now;   /* as of rules 1 and 3 */
    uint64_t lost;  /* bytes since the room last shrank */
    uint64_t drain; /* bytes to be read until losses count again */
    uint8_t *state; /* per file: enum headroom_state in headroom.c */
    uint32_t files;
};

int headroom_init(struct headroom *room, uint64_t most, uint32_t files); /* -ENOMEM */
void headroom_fini(struct headroom *room);
uint64_t headroom_bytes(const struct headroom *room); /* limit for all windows together */

/* The feeder requests all of a file whose reads can be seen. */
void headroom_feed(struct headroom *room, uint32_t file);
/* A plan has begun. What was fed for earlier plans may have been dropped long ago; feeding starts with at least
 * HEADROOM_LEAST. */
void headroom_begin(struct headroom *room);
/* A READ was answered, of the feeder or of another process. `ahead`: bytes that windows are ahead. */
void headroom_answer(struct headroom *room, uint32_t file, uint64_t bytes, bool fed, uint64_t ahead);
/* A file of this size was read. All earlier answers must have been reported. */
void headroom_read(struct headroom *room, uint32_t file, uint64_t bytes);

#endif
