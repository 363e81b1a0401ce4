/* How the files of a catalog are cut into extents.
 *
 * As with parts, nearly every file is one: an extent's number is its file's number plus what the large files before it
 * have more than one each, so only large files are listed. */
#include "fs/world/extents.h"

#include "fs/store/tier.h"

#include <errno.h>
#include <stdlib.h>

struct large_file {
    uint32_t file;
    uint64_t extra; /* extents beyond one a file, of all large files before this one */
};

struct extents {
    const struct catalog *catalog;
    struct large_file *large; /* by file number */
    size_t count;
    uint64_t extents;
    uint64_t piece; /* the most that is read at once of any file */
};

static uint64_t extents_of_size(uint64_t size)
{
    return size <= EXTENT_BYTES ? 1 : (size - 1) / EXTENT_BYTES + 1;
}

static size_t count_large(const struct catalog *c)
{
    size_t count = 0;
    uint32_t files = catalog_files(c);
    for (uint32_t file = 0; file < files; file++)
        count += catalog_file(c, file).size > EXTENT_BYTES;
    return count;
}

static void look_at_files(struct extents *e)
{
    uint32_t files = catalog_files(e->catalog);
    uint64_t extra = 0;
    for (uint32_t file = 0; file < files; file++) {
        uint64_t size = catalog_file(e->catalog, file).size;
        if (size > e->piece)
            e->piece = size < PIECE_BYTES ? size : PIECE_BYTES;
        if (size <= EXTENT_BYTES)
            continue;
        e->large[e->count++] = (struct large_file){file, extra};
        extra += extents_of_size(size) - 1;
    }
    e->extents = files + extra;
}

int extents_create(const struct catalog *catalog, struct extents **out)
{
    struct extents *e = calloc(1, sizeof *e);
    size_t large = count_large(catalog);
    if (e && large)
        e->large = calloc(large, sizeof *e->large);
    if (!e || (large && !e->large)) {
        extents_destroy(e);
        return -ENOMEM;
    }
    e->catalog = catalog;
    look_at_files(e);
    *out = e;
    return 0;
}

void extents_destroy(struct extents *e)
{
    if (!e)
        return;
    int saved = errno;
    free(e->large);
    free(e);
    errno = saved;
}

uint64_t extents_count(const struct extents *e)
{
    return e->extents;
}

uint64_t extents_first(const struct extents *e, uint32_t file)
{
    size_t low = 0, high = e->count; /* → the number of large files before this one */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (e->large[middle].file < file)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < e->count)
        return file + e->large[low].extra;
    return e->count ? file + e->extents - catalog_files(e->catalog) : file;
}

uint64_t extents_at(const struct extents *e, uint32_t file, uint64_t offset)
{
    return extents_first(e, file) + offset / EXTENT_BYTES;
}

/* The last large file that begins at this extent or before it; NULL: none. */
static const struct large_file *large_before(const struct extents *e, uint64_t extent)
{
    size_t low = 0, high = e->count; /* → how many begin there or before */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (e->large[middle].file + e->large[middle].extra <= extent)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &e->large[low - 1] : NULL;
}

uint32_t extents_file(const struct extents *e, uint64_t extent, uint64_t *from, uint64_t *to)
{
    const struct large_file *large = large_before(e, extent);
    uint32_t file = (uint32_t)extent;
    uint64_t stripe = 0;
    if (large) {
        uint64_t stripes = extents_of_size(catalog_file(e->catalog, large->file).size);
        uint64_t past = extent - large->file - large->extra; /* its first extent */
        file = past < stripes ? large->file : (uint32_t)(large->file + 1 + past - stripes);
        stripe = past < stripes ? past : 0;
    }
    uint64_t size = catalog_file(e->catalog, file).size;
    *from = stripe * EXTENT_BYTES;
    *to = size - *from > EXTENT_BYTES ? *from + EXTENT_BYTES : size;
    return file;
}

/* Numbers of its own, so that what the store really takes may change a little without another dealing. */
enum {
    COST_OF_VALUE = 128,  /* header, keys, index, and its part of what a segment costs that is full of values */
    COST_OF_BLOCKS = 256, /* checksums of its blocks; in files that are read in pieces */
};
_Static_assert(VALUE_HEADER + VALUE_COST + 1 <= COST_OF_VALUE, "what a value takes is counted");

static uint64_t cost_of(uint64_t bytes, uint64_t file_size)
{
    uint64_t values = (bytes + VALUE_BYTES - 1) / VALUE_BYTES;
    return bytes + values * (COST_OF_VALUE + (file_size > PIECE_BYTES ? COST_OF_BLOCKS : 0));
}

uint64_t extents_cost(const struct extents *e, uint64_t extent)
{
    uint64_t from, to;
    uint32_t file = extents_file(e, extent, &from, &to);
    return from < to ? cost_of(to - from, catalog_file(e->catalog, file).size) : 1;
}

uint64_t extents_piece_cost(const struct extents *e)
{
    return cost_of(e->piece, UINT64_MAX);
}
