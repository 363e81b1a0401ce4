/* The control mount, where the feeder asks for plans like any loader. What somebody else puts in its place is not it:
 * nothing is written there, and nothing believed. */
#ifndef FS_FEED_DESK_H
#define FS_FEED_DESK_H

struct desk {
    const char *path;
    unsigned minor; /* of its device number */
};

/* A descriptor of its root for a moment, below which all else is opened: the mount is in use as long. -ENODEV: another
 * file system is there. */
int desk_open(const struct desk *desk);

#endif
