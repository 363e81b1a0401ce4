/* Extents: the units of ownership. A file of up to EXTENT_BYTES is one, an empty one too; a larger one has one for each
 * stripe of EXTENT_BYTES. They are numbered 0… over the whole catalog, those of a file in a row. */
#ifndef FS_WORLD_EXTENTS_H
#define FS_WORLD_EXTENTS_H

#include "fs/catalog/catalog.h"
#include "fs/wire/units.h"

struct extents;

int extents_create(const struct catalog *catalog, struct extents **extents);
void extents_destroy(struct extents *extents);

uint64_t extents_count(const struct extents *e);
uint64_t extents_first(const struct extents *e, uint32_t file);
uint64_t extents_at(const struct extents *e, uint32_t file, uint64_t offset);
/* The file of an extent and the bytes of the file that it is. */
uint32_t extents_file(const struct extents *e, uint64_t extent, uint64_t *from, uint64_t *to);
/* How many extents there are from `first` on that have no more than so many parts together; a single one may have more.
 * At most `most`. */
uint32_t extents_run(const struct extents *e, uint64_t first, uint32_t most, uint64_t parts);
/* What it takes of a shard's budget, stored raw; an empty file counts 1. */
uint64_t extents_cost(const struct extents *e, uint64_t extent);
/* How much cost surely fits into a tier of this capacity, in whatever order extents of this catalog arrive: without
 * what segments cost, and a rest that is smaller than a piece. The capacity of a node is the sum over its tiers. */
uint64_t extents_room(const struct extents *e, uint64_t capacity);

#endif
