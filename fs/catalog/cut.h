/* How the files of a catalog are cut into pieces that are numbered 0… over all of it, those of a file in a row. A file
 * of up to `whole` bytes is one piece, an empty one too; a larger one has one for each 1 << shift bytes. One that no
 * tier may keep counts as one piece. */
#ifndef FS_CATALOG_CUT_H
#define FS_CATALOG_CUT_H

#include "fs/catalog/catalog.h"

struct cut {
    const struct catalog *catalog;
    uint64_t whole;
    unsigned shift;
    uint64_t pieces;
    struct cut_file *large; /* by file number */
    size_t count;
};

int cut_init(struct cut *cut, const struct catalog *catalog, uint64_t whole, unsigned shift); /* 0, -ENOMEM */
void cut_fini(struct cut *cut);

uint64_t cut_first(const struct cut *cut, uint32_t file);
uint64_t cut_at(const struct cut *cut, uint32_t file, uint64_t offset);
/* The bytes of the file that are the piece with this one. */
void cut_bytes(const struct cut *cut, uint32_t file, uint64_t offset, uint64_t *from, uint64_t *to);
/* The file of a piece, and the first byte that it is. */
uint32_t cut_file(const struct cut *cut, uint64_t piece, uint64_t *from);

#endif
