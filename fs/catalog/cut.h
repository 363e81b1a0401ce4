/* Cuts the files of a catalog into pieces, numbered from 0 over the whole catalog; those of a file are consecutive. A
 * file of up to `whole` bytes, also an empty one, is one piece. A larger file has one piece per 1 << shift bytes. A
 * file that tiers do not cache is one piece. */
#ifndef FS_CATALOG_CUT_H
#define FS_CATALOG_CUT_H

#include "fs/catalog/catalog.h"

struct cut {
    const struct catalog *catalog;
    uint64_t whole;
    unsigned shift;
    uint64_t pieces;
    struct cut_file *large; /* sorted by file number */
    size_t count;
};

int cut_init(struct cut *cut, const struct catalog *catalog, uint64_t whole, unsigned shift); /* 0, -ENOMEM */
void cut_fini(struct cut *cut);

uint64_t cut_first(const struct cut *cut, uint32_t file);
uint64_t cut_at(const struct cut *cut, uint32_t file, uint64_t offset);
/* The range of the piece with this byte of the file. */
void cut_bytes(const struct cut *cut, uint32_t file, uint64_t offset, uint64_t *from, uint64_t *to);
/* The file of a piece, and the piece's first byte. */
uint32_t cut_file(const struct cut *cut, uint64_t piece, uint64_t *from);

#endif
