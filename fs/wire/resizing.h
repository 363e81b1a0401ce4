/* What dealfs-resizer and its node's courier tell each other if several nodes resize together. They exchange frames
 * (message.h) over a socket that the courier has created:
 *
 *   resizer                                   courier
 *   KNOWS  struct resizing_knows        ──▶   compares those of all nodes; if they differ:
 *                                       ◀──   SHARE, to one node of each set with equal records
 *   RECORDS                             ──▶
 *                                       ◀──   RECORDS of one such node after the other, to all
 *                                       ◀──   BEGIN  struct resizing_part: of the files that no node knows
 *   PROGRESS  struct resizing_progress  ──▶   regularly
 *   MADE  struct resizing_progress      ──▶   the whole part is done
 *                                       ◀──   SHARE, to all
 *   RECORDS                             ──▶
 *                                       ◀──   RECORDS of one node after the other, to all
 *                                       ◀──   END: that was all; the resizer writes its records, and ends
 *
 *   at any time
 *   FAILED  text                        ──▶
 *
 * The first record of a file wins, so all nodes have the same in the end. A resizer whose courier hangs up writes its
 * records for its successor, and ends. */
#ifndef FS_WIRE_RESIZING_H
#define FS_WIRE_RESIZING_H

#include "fs/base/hash.h"

#include <stdbool.h>
#include <stdint.h>

enum resizing_kind {
    RESIZING_KNOWS = 1,
    RESIZING_SHARE,
    RESIZING_RECORDS, /* struct resizing_record: each has the derived catalog's record of a file */
    RESIZING_BEGIN,
    RESIZING_PROGRESS,
    RESIZING_MADE,
    RESIZING_END,
    RESIZING_FAILED,
};

struct resizing_knows {
    struct digest catalog;  /* versions of the source's catalog */
    struct digest records;  /* of its records for that */
    uint64_t known;         /* number of files */
    uint64_t bytes;         /* of the source */
    uint64_t room;          /* of its tiers */
    uint32_t side, quality; /* parameters of the result, */
    char library[56];       /* and the library that makes it */
};

struct resizing_record {
    uint32_t file, zero;
    uint64_t word[3]; /* struct derived_record */
};

/* A part of the remaining work, in units of 2^-32: 0 to 2^32. */
struct resizing_part {
    uint64_t from, to;
};

struct resizing_progress {
    uint64_t done, all;     /* files */
    uint64_t before, after; /* total size of the resized images */
    uint64_t known;         /* bytes that earlier results take in all tiers together */
    uint64_t needed;        /* bytes that this node's part needs, */
    uint64_t estimated;     /* valid if this is 1 */
    uint64_t unstored;      /* bytes that found no room here */
};

/* The part of one of these nodes. All get the same number of files, unless a node would lack room if files became no
 * smaller. Such a node gets less, in proportion to its room. */
struct resizing_part resizing_part_of(const struct resizing_knows *nodes, uint32_t count, uint32_t node);
/* Is the file at this place of the remaining files in the part? Neighbouring files are in different parts. */
bool resizing_is_in(const struct resizing_part *part, uint32_t place);

#endif
