/* Nearly every file is one piece, so a piece's number is its file's number plus the additional pieces of earlier large
 * files. Only large files are listed: a dataset of small files needs no memory here. */
#include "fs/catalog/cut.h"

#include "fs/base/array.h"

#include <stdlib.h>

struct cut_file {
    uint32_t file;
    uint64_t extra; /* additional pieces of all earlier large files */
};

static bool is_cut(const struct cut *c, uint32_t file)
{
    return catalog_kept_size(c->catalog, file) > c->whole;
}

/* Number of pieces of a large file. */
static uint64_t pieces_of(const struct cut *c, uint32_t file)
{
    return ((catalog_file(c->catalog, file).size - 1) >> c->shift) + 1;
}

int cut_init(struct cut *c, const struct catalog *catalog, uint64_t whole, unsigned shift)
{
    *c = (struct cut){.catalog = catalog, .whole = whole, .shift = shift};
    uint64_t extra = 0;
    size_t room = 0;
    uint32_t files = catalog_files(catalog);
    for (uint32_t file = 0; file < files; file++) {
        if (!is_cut(c, file))
            continue;
        if (array_reserve(c->large, room, c->count + 1)) {
            cut_fini(c);
            return -ENOMEM;
        }
        c->large[c->count++] = (struct cut_file){file, extra};
        extra += pieces_of(c, file) - 1;
    }
    c->pieces = files + extra;
    return 0;
}

void cut_fini(struct cut *c)
{
    free(c->large);
    c->large = NULL;
}

uint64_t cut_first(const struct cut *c, uint32_t file)
{
    size_t low = 0, high = c->count; /* → number of earlier large files */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->large[middle].file < file)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < c->count)
        return file + c->large[low].extra;
    return c->count ? file + c->pieces - catalog_files(c->catalog) : file;
}

uint64_t cut_at(const struct cut *c, uint32_t file, uint64_t offset)
{
    uint64_t first = cut_first(c, file);
    return is_cut(c, file) ? first + (offset >> c->shift) : first;
}

void cut_bytes(const struct cut *c, uint32_t file, uint64_t offset, uint64_t *from, uint64_t *to)
{
    uint64_t size = catalog_file(c->catalog, file).size, piece = UINT64_C(1) << c->shift;
    *from = size <= c->whole ? 0 : offset >> c->shift << c->shift;
    *to = size <= c->whole || size - *from <= piece ? size : *from + piece;
}

/* The last large file that begins at this piece or before; NULL: none. */
static const struct cut_file *large_before(const struct cut *c, uint64_t piece)
{
    size_t low = 0, high = c->count; /* → how many begin there or before */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->large[middle].file + c->large[middle].extra <= piece)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &c->large[low - 1] : NULL;
}

uint32_t cut_file(const struct cut *c, uint64_t piece, uint64_t *from)
{
    const struct cut_file *large = large_before(c, piece);
    *from = 0;
    if (!large)
        return (uint32_t)piece;
    uint64_t past = piece - large->file - large->extra; /* after its first piece */
    uint64_t pieces = pieces_of(c, large->file);
    if (past >= pieces)
        return (uint32_t)(large->file + 1 + past - pieces);
    *from = past << c->shift;
    return large->file;
}
