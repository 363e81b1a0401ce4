/* Nearly every file is one piece, so a piece's number is its file's number plus the additional pieces of earlier large
 * files. Only large files are listed: a dataset of small files needs no memory here. */
#include "fs/catalog/cut.h"

#include "fs/base/array.h"

#include <stdlib.h>

static bool is_to_be_cut(const struct cut *c, uint32_t file)
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
    c->files = catalog_files(catalog);
    for (uint32_t file = 0; file < c->files; file++) {
        if (!is_to_be_cut(c, file))
            continue;
        if (array_reserve(c->large, room, c->count + 1)) {
            cut_fini(c);
            return -ENOMEM;
        }
        c->large[c->count++] = (struct cut_file){file, 0, extra};
        extra += pieces_of(c, file) - 1;
    }
    c->pieces = c->files + extra;
    return 0;
}

void cut_fini(struct cut *c)
{
    free(c->large);
    c->large = NULL;
}

/* Number of earlier large files. */
static size_t large_before_file(const struct cut *c, uint32_t file)
{
    return bisect(i, c->count, c->large[i].file < file);
}

static bool is_large(const struct cut *c, size_t earlier, uint32_t file)
{
    return earlier < c->count && c->large[earlier].file == file;
}

static uint64_t first_piece(const struct cut *c, size_t earlier, uint32_t file)
{
    return file + (earlier < c->count ? c->large[earlier].extra : c->pieces - c->files);
}

bool cut_is_large(const struct cut *c, uint32_t file)
{
    return is_large(c, large_before_file(c, file), file);
}

uint64_t cut_first(const struct cut *c, uint32_t file)
{
    return first_piece(c, large_before_file(c, file), file);
}

uint64_t cut_at(const struct cut *c, uint32_t file, uint64_t offset)
{
    size_t earlier = large_before_file(c, file);
    return first_piece(c, earlier, file) + (is_large(c, earlier, file) ? offset >> c->shift : 0);
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
    size_t before = bisect(i, c->count, c->large[i].file + c->large[i].extra <= piece);
    return before ? &c->large[before - 1] : NULL;
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
