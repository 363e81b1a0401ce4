/* The inodes of samples.d: one for each version of each list.
 *
 * A file there is cached by the kernel for ever, so a list that is replaced must come back as another inode. Its number
 * is made of the list's name and digest, so that the next server of the mount, and a read without a handle, find it
 * again. */
#ifndef FS_MOUNT_CONTROL_LISTS_H
#define FS_MOUNT_CONTROL_LISTS_H

#include "fs/catalog/samples.h"

#include <stdint.h>

#define INO_LIST (UINT64_C(1) << 63) /* set in the inode numbers of lists only */

uint64_t list_ino(const char *name, const struct samples *list);
/* A reference, or NULL: not a list, or a version that has been replaced. */
struct samples *lists_find(struct samples_table *table, uint64_t ino);

#endif
