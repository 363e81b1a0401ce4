/* How the files of a catalog are cut into parts.
 *
 * Nearly every file is one part, so a part's number is its file's number plus what the large files before it have more
 * than one each: only large files are listed, and a data set of small files costs no memory here. */
#include "fs/store/span.h"

#include <errno.h>
#include <stdlib.h>

struct large_file {
    uint32_t file;
    uint64_t extra; /* parts beyond one a file, of all large files before this one */
};

struct geometry {
    const struct catalog *catalog;
    struct large_file *large; /* by file number */
    size_t count, room;
    uint64_t parts;
};

static uint64_t parts_of_size(uint64_t size)
{
    return size <= PIECE_BYTES ? 1 : (size - 1) / VALUE_BYTES + 1;
}

static int add_large(struct geometry *g, uint32_t file, uint64_t extra)
{
    if (g->count == g->room) {
        size_t room = g->room ? 2 * g->room : 64;
        struct large_file *grown = realloc(g->large, room * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        g->large = grown;
        g->room = room;
    }
    g->large[g->count++] = (struct large_file){file, extra};
    return 0;
}

int geometry_create(const struct catalog *c, struct geometry **out)
{
    struct geometry *g = calloc(1, sizeof *g);
    if (!g)
        return -ENOMEM;
    g->catalog = c;
    uint64_t extra = 0;
    uint32_t files = catalog_files(c);
    for (uint32_t file = 0; file < files; file++) {
        uint64_t parts = parts_of_size(catalog_file(c, file).size);
        if (parts == 1)
            continue;
        int error = add_large(g, file, extra);
        if (error) {
            geometry_destroy(g);
            return error;
        }
        extra += parts - 1;
    }
    g->parts = files + extra;
    *out = g;
    return 0;
}

void geometry_destroy(struct geometry *g)
{
    if (!g)
        return;
    free(g->large);
    free(g);
}

uint64_t geometry_parts(const struct geometry *g)
{
    return g->parts;
}

uint64_t geometry_first_part(const struct geometry *g, uint32_t file)
{
    size_t low = 0, high = g->count; /* → the number of large files before this one */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (g->large[middle].file < file)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < g->count)
        return file + g->large[low].extra;
    return g->count ? file + g->parts - catalog_files(g->catalog) : file;
}

uint64_t geometry_part_at(const struct geometry *g, uint32_t file, uint64_t offset)
{
    uint64_t first = geometry_first_part(g, file);
    return catalog_file(g->catalog, file).size <= PIECE_BYTES ? first : first + offset / VALUE_BYTES;
}

void geometry_part_bytes(const struct geometry *g, uint32_t file, uint64_t offset, uint64_t *from, uint64_t *to)
{
    uint64_t size = catalog_file(g->catalog, file).size;
    *from = 0;
    *to = size;
    if (size <= PIECE_BYTES)
        return;
    *from = offset / VALUE_BYTES * VALUE_BYTES;
    if (size - *from > VALUE_BYTES)
        *to = *from + VALUE_BYTES;
}
