/* Operations on open files, for the table in control-tree.c. They reply. */
#ifndef FS_CONTROL_OPEN_H
#define FS_CONTROL_OPEN_H

#include <fuse_lowlevel.h>

void control_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void control_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void control_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
                   struct fuse_file_info *fi);
void control_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void control_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);

/* Answers parked reads whose reader has given up. For work_rules.tick; the argument is control. */
void control_drop_parked(void *control);

#endif
