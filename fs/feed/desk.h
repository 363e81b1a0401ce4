/* The control mount, where the feeder requests plans like any loader. If another filesystem is mounted in its place,
 * nothing is written to or believed from it. */
#ifndef FS_FEED_DESK_H
#define FS_FEED_DESK_H

struct desk {
    const char *path;
    unsigned minor; /* minor device number */
};

/* A descriptor of the control mount's root; close it soon, because the mount is busy meanwhile. -ENODEV: another
 * filesystem is there. */
int desk_open(const struct desk *desk);

#endif
