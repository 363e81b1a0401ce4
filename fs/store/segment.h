/* Segments: what a tier's values come and go in. While it is filled, a segment's values lie in a staging; then they are
 * stored as one file of RocksDB, and another struct takes its place in the table under the same number.
 *
 * state     values in  rooms   in the table  left when
 * OPEN      staging    given   yes           full, or a flush                        → SEALED
 * SEALED    staging    closed  yes           the last room is committed or abandoned → STORING
 * STORING   staging    none    yes           its file is ingested: DRAINING; else STUCK
 * STUCK     staging    none    yes           the tier is closed
 * DRAINING  staging    none    no            the last reader is gone: the staging is free
 * STORED    file       none    yes           its live values were moved away         → DOOMED
 * DOOMED    file       none    no            the last reader is gone: the file is dropped
 *
 * Whoever reads a value holds a pin on its segment: RocksDB unmaps a file when it is dropped, and a staging is written
 * anew. What is in the table has one pin of the tier. */
#ifndef FS_STORE_SEGMENT_H
#define FS_STORE_SEGMENT_H

#include "fs/store/known.h"
#include "fs/store/staging.h"

#include <stdatomic.h>
#include <stdbool.h>

enum segment_state {
    SEGMENT_OPEN,
    SEGMENT_SEALED,
    SEGMENT_STORING,
    SEGMENT_STUCK,
    SEGMENT_DRAINING,
    SEGMENT_STORED,
    SEGMENT_DOOMED,
};

struct tier;

struct segment {
    _Atomic uint32_t pins;
    _Atomic bool worn; /* a part of it was dropped since its dead bytes were counted */
    /* constant while it has a pin: */
    uint32_t number;
    struct tier *tier;
    struct staging *staging; /* NULL: a file */
    struct known *known;     /* of the file; NULL: nothing */
    /* tier->lock: */
    enum segment_state state;
    uint32_t places, rooms; /* given out, and of those not yet back */
    size_t used;            /* of the staging */
    uint64_t held;          /* what it counts in the tier's budget */
    struct segment *next;   /* in tier->doomed, or among the spares */
    /* the tier's thread alone: */
    struct segment *next_stored;
    uint64_t live, dead; /* bytes, as last counted; nothing is counted before the first part is dropped */
    uint32_t live_values;
};

/* Segments by number. Structs are never freed before the table, so that a reader may look at one that it got from the
 * table but has not pinned yet. */
struct segments {
    struct segment *_Atomic *_Atomic *chunk;
    struct segment *spare; /* tier->lock */
};

int segments_init(struct segments *table);
void segments_fini(struct segments *table); /* frees spares; those in the table must have been taken out */

/* A struct with one pin, not in the table; NULL: no memory. tier->lock. */
struct segment *segment_new(struct segments *table, struct tier *tier, uint32_t number, struct staging *staging,
                            struct known *known);
void segment_free(struct segments *table, struct segment *s); /* tier->lock */

int segments_set(struct segments *table, uint32_t number, struct segment *s);
struct segment *segments_at(const struct segments *table, uint32_t number);

struct segment *segment_pin(const struct segments *table, uint32_t number); /* NULL: no such segment now */
void segment_unpin(struct segment *s);                                      /* may take tier->lock */

#endif
