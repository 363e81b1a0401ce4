/* Faults for the crash tests, requested by the environment variable DEALFS_FAULTS, which keepers and servers pass on to
 * each other. A list, separated by commas, of
 *
 *     abort_start          the server aborts before it serves
 *     hang_start           its main thread hangs before it serves
 *     abort_init           it aborts when it has read INIT and not replied
 *     abort_read=NAME      it aborts on READ of a file with that name
 *     stuck_lookup=GLOB    the thread that handles LOOKUP of such a name in the root looks it up in its own mount,
 *                          and hangs in the kernel
 *
 * "@G" after one restricts it to the G-th server of the mount. The faults of the source (fs/store/fault.c) are in
 * DEALFS_SOURCE_FAULTS. */
#ifndef FS_SERVER_FAULTS_H
#define FS_SERVER_FAULTS_H

#include "fs/attach/config.h"
#include "fs/fuse/data.h"

/* The operations of the data mount, wrapped with faults. Aborts or hangs here if requested. */
const struct fuse_lowlevel_ops *faults_apply(const struct mount_config *config, uint32_t generation);

#endif
