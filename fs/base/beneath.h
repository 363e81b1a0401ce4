/* Opens what is below a directory, never outside of it and never through a symlink, with a path of any length. */
#ifndef FS_BASE_BENEATH_H
#define FS_BASE_BENEATH_H

/* `path` is relative, without ".." and without slashes at its ends. The descriptor, or -errno: -ELOOP, -ENOTDIR or
 * -EXDEV if a component is a symlink. */
int beneath_open(int root, const char *path, int flags);

#endif
