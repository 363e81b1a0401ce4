/* Shared by the files of the data mount. */
#ifndef FS_FUSE_DATA_INSIDE_H
#define FS_FUSE_DATA_INSIDE_H

#include "fs/fuse/data.h"

/* listing.c: READDIR and READDIRPLUS over the catalog. */
void listing_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void listing_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
/* A name is asked for by itself. It writes nothing once there are many: all threads share the count. */
void listing_count_lookup(struct data_mount *m);

#endif
