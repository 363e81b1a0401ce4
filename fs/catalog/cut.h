/* Cuts the files of a catalog into pieces, numbered from 0 over the whole catalog; those of a file are consecutive. A
 * file of up to `whole` bytes, also an empty one, is one piece. A larger file has one piece per 1 << shift bytes. A
 * file that tiers do not cache is one piece. */
#ifndef FS_CATALOG_CUT_H
#define FS_CATALOG_CUT_H

#include "fs/catalog/catalog.h"

#include <stdbool.h>

struct cut_file {
    uint32_t file;
    uint32_t zero;
    uint64_t extra; /* additional pieces of all earlier large files */
};

struct cut {
    const struct catalog *catalog; /* not needed by cut_first, cut_at and cut_is_large */
    uint64_t whole;
    unsigned shift;
    uint32_t files;
    uint64_t pieces;
    struct cut_file *large; /* sorted by file number */
    size_t count;
};

int cut_init(struct cut *cut, const struct catalog *catalog, uint64_t whole, unsigned shift); /* 0, -ENOMEM */
void cut_fini(struct cut *cut);

bool cut_is_large(const struct cut *cut, uint32_t file); /* it is cut into several pieces */
uint64_t cut_first(const struct cut *cut, uint32_t file);
uint64_t cut_at(const struct cut *cut, uint32_t file, uint64_t offset);
/* The range of the piece with this byte of the file. */
void cut_bytes(const struct cut *cut, uint32_t file, uint64_t offset, uint64_t *from, uint64_t *to);
/* The file of a piece, and the piece's first byte. */
uint32_t cut_file(const struct cut *cut, uint64_t piece, uint64_t *from);

#endif
