/* READDIR and READDIRPLUS over the catalog. */
#ifndef FS_MOUNT_LISTING_H
#define FS_MOUNT_LISTING_H

#include "fs/mount/data.h"

void listing_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void listing_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);

#endif
