/* The share of a node: which extents of the dataset it keeps. */
#ifndef FS_STORE_SHARE_H
#define FS_STORE_SHARE_H

#include "fs/catalog/catalog.h"

struct share {
    bool (*keeps)(void *user, uint32_t file, uint64_t offset); /* the extent that has this byte; NULL: all */
    void *user;
};

static inline bool share_has(const struct share *share, uint32_t file, uint64_t offset)
{
    return !share->keeps || share->keeps(share->user, file, offset);
}

/* How many bytes it has, and how many files: those whose first byte it has, so that each counts once in a world. */
void share_count(const struct share *share, const struct catalog *catalog, uint64_t *files, uint64_t *bytes);

#endif
