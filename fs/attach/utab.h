/* The notes of mount(8) in /run/mount/utab. umount(8) looks for a helper only for mounts listed there, and only with
 * our helper, umount.fuse.dealfs, does a plain `umount MOUNTPOINT` remove both parts of a mount. That is their only
 * purpose: without such a file, or without mount(8), nothing is done. Each function takes up to a second, because any
 * user can hold the lock of that file. So call it last. */
#ifndef FS_ATTACH_UTAB_H
#define FS_ATTACH_UTAB_H

void utab_note(const char *source, const char *mountpoint);
void utab_forget(const char *mountpoint); /* unless something is mounted there by now */

#endif
