/* What dealfs-resizer and its node's courier say to each other where several nodes resize together, in frames
 * (message.h) over a socket that the courier has made:
 *
 *   resizer                                   courier
 *   KNOWS  struct resizing_knows        ──▶   compares all; where nodes know different things:
 *                                       ◀──   SHARE, to one of those that know the same
 *   RECORDS                             ──▶
 *                                       ◀──   RECORDS of one such node after the other, to all
 *                                       ◀──   BEGIN  struct resizing_part: of the files that nobody knows
 *   PROGRESS  struct resizing_progress  ──▶   now and then
 *   MADE  struct resizing_progress      ──▶   all of the part is done
 *                                       ◀──   SHARE, to all
 *   RECORDS                             ──▶
 *                                       ◀──   RECORDS of one node after the other, to all
 *                                       ◀──   END: there is no more; the resizer writes what is known, and ends
 *
 *   at any time
 *   FAILED  words                       ──▶
 *
 * What is told last of a file counts for nothing where something was told before: so all know the same in the end. A
 * resizer whose courier hangs up writes what it knows, for the next one, and ends. */
#ifndef FS_WIRE_RESIZING_H
#define FS_WIRE_RESIZING_H

#include "fs/base/hash.h"

#include <stdbool.h>
#include <stdint.h>

enum resizing_kind {
    RESIZING_KNOWS = 1,
    RESIZING_SHARE,
    RESIZING_RECORDS, /* struct resizing_record, each with what a derived catalog has of the file */
    RESIZING_BEGIN,
    RESIZING_PROGRESS,
    RESIZING_MADE,
    RESIZING_END,
    RESIZING_FAILED,
};

struct resizing_knows {
    struct digest catalog;  /* versions of the source's catalog */
    struct digest records;  /* of what it knows of that */
    uint64_t known;         /* files */
    uint64_t bytes;         /* of the source */
    uint64_t room;          /* of its tiers */
    uint32_t side, quality; /* what is made, */
    char library[56];       /* and by what */
};

struct resizing_record {
    uint32_t file, zero;
    uint64_t word[3]; /* struct derived_record */
};

/* Of what is to be done, in 2^32 parts: 0 to 2^32. */
struct resizing_part {
    uint64_t from, to;
};

struct resizing_progress {
    uint64_t done, all;     /* files */
    uint64_t before, after; /* bytes of what was made */
    uint64_t known;         /* what takes, in all tiers together, what was made before */
    uint64_t needed;        /* what this node's part takes, */
    uint64_t estimated;     /* if this is 1 */
    uint64_t unstored;      /* bytes that found no room here */
};

/* What one of these nodes does: as many files as every other, but where it would not have room for them if they became
 * no smaller. Then it does so much less as its room is smaller than that of the others. */
struct resizing_part resizing_part_of(const struct resizing_knows *nodes, uint32_t count, uint32_t node);
/* Of the files that are to be done, the one at this place: neighbours are in different parts. */
bool resizing_is_in(const struct resizing_part *part, uint32_t place);

#endif
