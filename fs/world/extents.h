/* Extents: the units of ownership. A file of up to EXTENT_BYTES, also an empty one, is one extent. A larger file has
 * one extent per stripe of EXTENT_BYTES. Extents are numbered from 0 over the whole catalog; those of one file are
 * contiguous. */
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
/* Returns the file of an extent. [*from, *to) is the extent's range of that file. */
uint32_t extents_file(const struct extents *e, uint64_t extent, uint64_t *from, uint64_t *to);
/* Number of extents from `first` on that together have at most `parts` parts: at least one, at most `most`. */
uint32_t extents_run(const struct extents *e, uint64_t first, uint32_t most, uint64_t parts);
/* Bytes that the extent takes of a tier's capacity, stored raw. An empty file costs 1. */
uint64_t extents_cost(const struct extents *e, uint64_t extent);
/* Total cost of extents that fits into a tier of this capacity, in whatever order they arrive. The costs of segments,
 * and a remainder smaller than a piece, are excluded. A node's room is the sum over its tiers. */
uint64_t extents_room(const struct extents *e, uint64_t capacity);

#endif
