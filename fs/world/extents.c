/* Cuts the files of a catalog into extents, and computes what an extent costs in a tier. */
#include "fs/world/extents.h"

#include "fs/catalog/cut.h"
#include "fs/store/shard.h"

#include <errno.h>
#include <stdlib.h>

struct extents {
    struct cut cut;
    uint64_t piece; /* largest read of any file of the catalog */
};

static uint64_t largest_piece(const struct catalog *c)
{
    uint64_t piece = 0;
    uint32_t files = catalog_files(c);
    for (uint32_t file = 0; file < files && piece < PIECE_BYTES; file++) {
        uint64_t size = catalog_file(c, file).size;
        if (size > piece)
            piece = size < PIECE_BYTES ? size : PIECE_BYTES;
    }
    return piece;
}

int extents_create(const struct catalog *catalog, struct extents **out)
{
    struct extents *e = calloc(1, sizeof *e);
    int error = e ? cut_init(&e->cut, catalog, EXTENT_BYTES, __builtin_ctz(EXTENT_BYTES)) : -ENOMEM;
    if (error) {
        free(e);
        return error;
    }
    e->piece = largest_piece(catalog);
    *out = e;
    return 0;
}

void extents_destroy(struct extents *e)
{
    if (!e)
        return;
    cut_fini(&e->cut);
    free(e);
}

uint64_t extents_count(const struct extents *e)
{
    return e->cut.pieces;
}

uint64_t extents_first(const struct extents *e, uint32_t file)
{
    return cut_first(&e->cut, file);
}

uint64_t extents_at(const struct extents *e, uint32_t file, uint64_t offset)
{
    return cut_at(&e->cut, file, offset);
}

/* Length of the extent that begins at `from`, in a file of `size` bytes. */
static uint64_t length_at(uint64_t size, uint64_t from)
{
    uint64_t left = size <= CATALOG_KEPT_MOST ? size - from : 0; /* larger files cannot be read */
    return left < EXTENT_BYTES ? left : EXTENT_BYTES;
}

uint32_t extents_file(const struct extents *e, uint64_t extent, uint64_t *from, uint64_t *to)
{
    uint32_t file = cut_file(&e->cut, extent, from);
    *to = *from + length_at(catalog_file(e->cut.catalog, file).size, *from);
    return file;
}

static uint64_t parts_of(const struct extents *e, uint64_t extent)
{
    uint64_t from, size = catalog_file(e->cut.catalog, cut_file(&e->cut, extent, &from)).size;
    return size <= PIECE_BYTES ? 1 : (length_at(size, from) + VALUE_BYTES - 1) / VALUE_BYTES;
}

uint32_t extents_run(const struct extents *e, uint64_t first, uint32_t most, uint64_t parts)
{
    uint32_t count = 0;
    for (uint64_t sum = 0; count < most && first + count < e->cut.pieces; count++) {
        sum += parts_of(e, first + count);
        if (count && sum > parts)
            break;
    }
    return count;
}

/* These are upper bounds, not the store's exact numbers: the store may change a little without changing layouts. */
enum {
    COST_OF_VALUE = 128,  /* header, keys, index, and the value's share of the costs of a full segment */
    COST_OF_BLOCKS = 256, /* checksums of its blocks; only in files that are read in pieces */
};
_Static_assert(VALUE_HEADER + VALUE_COST + 1 <= COST_OF_VALUE, "what a value takes is counted");

static uint64_t cost_of(uint64_t bytes, uint64_t file_size)
{
    uint64_t values = (bytes + VALUE_BYTES - 1) / VALUE_BYTES;
    return bytes + values * (COST_OF_VALUE + (file_size > PIECE_BYTES ? COST_OF_BLOCKS : 0));
}

uint64_t extents_cost(const struct extents *e, uint64_t extent)
{
    uint64_t from, size = catalog_file(e->cut.catalog, cut_file(&e->cut, extent, &from)).size;
    uint64_t length = length_at(size, from);
    return length ? cost_of(length, size) : 1;
}

uint64_t extents_room(const struct extents *e, uint64_t capacity)
{
    uint64_t room = shard_room(capacity), piece = cost_of(e->piece, UINT64_MAX);
    return room > piece ? room - piece : 0;
}
