/* Segments: the units in which values enter and leave a tier. While a segment is being filled, its values are in a
 * staging. Then they are stored as one file of RocksDB, and another struct replaces it in the table under the same
 * number.
 *
 * state     values in  rooms   in the table  left when
 * OPEN      staging    given   yes           it is full, or a flush                     → SEALED
 * SEALED    staging    closed  yes           the last room is committed or abandoned    → STORING
 * STORING   staging    none    yes           its file is ingested → DRAINING; failed for now → SEALED; else → STUCK
 * STUCK     staging    none    yes           the tier is closed
 * DRAINING  staging    none    no            its last reader has finished: the staging is free
 * STORED    file       none    yes           its live values were moved away            → DOOMED
 * DOOMED    file       none    no            its last reader has finished: the file is dropped
 *
 * `places` and `used` are valid while the values are in a staging; `live`, `dead` and `worn` while they are in a file.
 * segment_check asserts this in builds with a sanitizer.
 *
 * A thread that reads a value holds a pin on its segment, because files are unmapped and stagings reused. Many threads
 * read the same segment, so each counts its pins in its own cache line. Only the sum is meaningful, and only once the
 * segment is closed, that is, no longer in the table: then no pin is added. The courier reads files without a pin
 * (fs/wire/tier-share.h). */
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
    _Atomic bool worn;   /* a part was dropped since dead bytes were last counted */
    struct stock *stock; /* constant */
    /* constant while it has a pin: */
    _Atomic uint32_t number;
    struct staging_area *staging; /* NULL: the values are in a file */
    struct segment_file *file;
    /* guarded by stock->lock: */
    bool left; /* its last pin is gone */
    enum segment_state state;
    uint32_t places, rooms; /* places given out; rooms not yet returned */
    size_t used;            /* bytes of the staging */
    uint64_t held;          /* bytes that it uses of the tier's budget */
    /* only used by the tier's thread: */
    uint64_t live, dead; /* bytes, as last counted; 0 before the first part was dropped */
    uint32_t live_values;
    /* in a list of the stock, or among the spares. Guarded by the lock, except in `stored` */
    TAILQ_ENTRY(segment) link;
    unsigned stripes;
    struct pins pins[];
};

TAILQ_HEAD(segment_list, segment);

/* Segments by number. Structs are not freed before the table, so a reader may look at a struct from the table before it
 * has pinned it. */
struct segments {
    struct segment *_Atomic *_Atomic *chunk;
    uint32_t chunks; /* the first unused one; stock->lock */
    struct stock *stock;
    unsigned stripes;          /* number of pin counters per segment */
    struct segment_list spare; /* guarded by stock->lock */
};

int segments_init(struct segments *table, struct stock *stock, bool many_readers);
void segments_fini(struct segments *table); /* frees spares; remove the segments in the table before */
int segments_set(struct segments *table, uint32_t number, struct segment *s); /* needs stock->lock */
struct segment *segments_at(const struct segments *table, uint32_t number);

/* Put a new struct into the table, with a `staging` or a `file`. NULL: no memory. Needs stock->lock. */
struct segment *segment_new(struct segments *table, uint32_t number, struct staging_area *staging,
                            struct segment_file *file);
void segment_free(struct segments *table, struct segment *s); /* needs stock->lock */
void segments_free_all(struct segment_list *list);            /* frees the memory */

void segment_enter(struct segment *s, enum segment_state state); /* needs stock->lock */

/* Pin a segment that the table had under this number. False: the struct is another segment by now. Release it in
 * both cases. */
bool segment_hold(struct segment *s, uint32_t number);
bool segment_release(struct segment *s); /* true: it is closed, and this may have been the last pin */
/* needs stock->lock. True for exactly one caller, when the segment is closed and not pinned */
bool segment_leave(struct segment *s);

#endif
