/* Segments: what a tier's values come and go in. While it is filled, a segment's values lie in a staging; then they are
 * stored as one file of RocksDB, and another struct takes its place in the table under the same number.
 *
 * state     values in  rooms   in the table  left when
 * OPEN      staging    given   yes           full, or a flush                        → SEALED
 * SEALED    staging    closed  yes           the last room is committed or abandoned → STORING
 * STORING   staging    none    yes           its file is ingested: DRAINING; not this time: SEALED; else STUCK
 * STUCK     staging    none    yes           the tier is closed
 * DRAINING  staging    none    no            the last reader is gone: the staging is free
 * STORED    file       none    yes           its live values were moved away         → DOOMED
 * DOOMED    file       none    no            the last reader is gone: the file is dropped
 *
 * `places` and `used` mean something while the values are in a staging; `live`, `dead` and `worn` while they are in a
 * file. segment_check asserts it, in builds with a sanitizer.
 *
 * A thread that reads a value holds a pin on its segment: a file is unmapped and a staging is written again. All may
 * read from the same one, so each thread counts its pins in a line of its own. Only their sum says anything, and only
 * once the segment is closed, that is, has left the table: then no pin is added any more. */
#ifndef FS_STORE_SEGMENT_H
#define FS_STORE_SEGMENT_H

#include "fs/base/thread.h"
#include "fs/store/segment-file.h"
#include "fs/store/staging.h"

#include <stdatomic.h>
#include <sys/queue.h>

enum segment_state {
    SEGMENT_OPEN,
    SEGMENT_SEALED,
    SEGMENT_STORING,
    SEGMENT_STUCK,
    SEGMENT_DRAINING,
    SEGMENT_STORED,
    SEGMENT_DOOMED,
};

struct pins {
    _Alignas(CACHE_LINE) _Atomic int64_t n;
};

struct segment {
    _Atomic bool closed;
    _Atomic bool worn;   /* a part of it was dropped since its dead bytes were counted */
    struct stock *stock; /* constant */
    /* constant while it has a pin: */
    _Atomic uint32_t number;
    struct staging_area *staging; /* NULL: a file */
    struct segment_file *file;
    /* stock->lock: */
    bool left; /* its last pin is gone */
    enum segment_state state;
    uint32_t places, rooms; /* given out, and of those not yet back */
    size_t used;            /* of the staging */
    uint64_t held;          /* what it counts in the tier's budget */
    /* the tier's thread alone: */
    uint64_t live, dead; /* bytes, as last counted; nothing is counted before the first part is dropped */
    uint32_t live_values;
    TAILQ_ENTRY(segment) link; /* in a list of the stock, or among the spares; lock, except for `stored` */
    unsigned stripes;
    struct pins pins[];
};

TAILQ_HEAD(segment_list, segment);

/* Segments by number. Structs are never freed before the table, so that a reader may look at one that it got from the
 * table but has not pinned yet. */
struct segments {
    struct segment *_Atomic *_Atomic *chunk;
    uint32_t chunks; /* none is used from here on; stock->lock */
    struct stock *stock;
    unsigned stripes;          /* of the pins of each */
    struct segment_list spare; /* stock->lock */
};

int segments_init(struct segments *table, struct stock *stock, bool many_readers);
void segments_fini(struct segments *table); /* frees spares; those in the table must have been taken out */
int segments_set(struct segments *table, uint32_t number, struct segment *s); /* stock->lock */
struct segment *segments_at(const struct segments *table, uint32_t number);

/* A struct in the table; `staging` or `file`. NULL: no memory. stock->lock. */
struct segment *segment_new(struct segments *table, uint32_t number, struct staging_area *staging,
                            struct segment_file *file);
void segment_free(struct segments *table, struct segment *s); /* stock->lock */
void segments_free_all(struct segment_list *list);            /* for good */

void segment_enter(struct segment *s, enum segment_state state); /* stock->lock */

/* A pin on one that the table had under this number. False: it is another by now; it is to be released all the same. */
bool segment_hold(struct segment *s, uint32_t number);
bool segment_release(struct segment *s); /* true: it is closed, and this may have been the last pin */
bool segment_leave(struct segment *s); /* stock->lock: for one caller true, when it is closed and not pinned any more */

#endif
