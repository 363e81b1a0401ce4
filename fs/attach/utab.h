/* The notes of mount(8) in /run/mount/utab. Only for a mount that stands there does umount(8) look for a helper, and
 * only with ours, umount.fuse.dealfs, does a plain `umount MOUNTPOINT` take both parts of a mount away. All of it is
 * for that: where there is no such file, or no mount(8), nothing is done.
 * Each takes a second at most: any user can hold the lock of that file. So call it when all else is done. */
#ifndef FS_ATTACH_UTAB_H
#define FS_ATTACH_UTAB_H

void utab_note(const char *source, const char *mountpoint);
void utab_forget(const char *mountpoint); /* unless something is mounted there by now */

#endif
