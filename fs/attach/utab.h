/* The notes of mount(8) in /run/mount/utab. Only for a mount that stands there does umount(8) look for a helper, and
 * only with ours, umount.fuse.dealfs, does a plain `umount MOUNTPOINT` take both parts of a mount away. All of it is
 * for that: where there is no such file, or no mount(8), nothing is done. Blocks while that program runs. */
#ifndef FS_ATTACH_UTAB_H
#define FS_ATTACH_UTAB_H

void utab_note(const char *source, const char *mountpoint);
void utab_forget(const char *mountpoint); /* also when nothing is mounted there any more */

#endif
