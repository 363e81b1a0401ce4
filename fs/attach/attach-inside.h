/* fusermount3, the setuid helper that mounts for ordinary users. */
#ifndef FS_ATTACH_ATTACH_INSIDE_H
#define FS_ATTACH_ATTACH_INSIDE_H

#include "fs/attach/attach.h"

int fusermount_mount(const char *path, const struct attach_options *options, int *fd, struct str *why);
int fusermount_unmount(const char *path, bool lazy, struct str *why);

#endif
