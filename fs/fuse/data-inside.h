/* Shared by the files of the data mount. */
#ifndef FS_FUSE_DATA_INSIDE_H
#define FS_FUSE_DATA_INSIDE_H

#include "fs/fuse/data.h"

/* listing.c: READDIR and READDIRPLUS over the catalog. */
void listing_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void listing_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
/* Counts a LOOKUP of a single name. After many, it writes nothing more, because all threads share the counter. */
void listing_count_lookup(struct data_mount *m);

#endif
