/* Open what lies below a directory, never outside it and never through a symlink, however long its path. */
#ifndef FS_BASE_BENEATH_H
#define FS_BASE_BENEATH_H

/* `path` is relative, without ".." and without slashes at its ends. The descriptor, or -errno: -ELOOP, -ENOTDIR or
 * -EXDEV where a component is a symlink. */
int beneath_open(int root, const char *path, int flags);

#endif
