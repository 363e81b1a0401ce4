/* Faults for the crash tests, asked for by the environment variable DEALFS_FAULTS, which keepers and servers pass on to
 * each other. A list of
 *
 *     abort_start          the server aborts before it serves
 *     hang_start           its main thread hangs before it serves
 *     abort_init           it aborts when it has read INIT and not answered it
 *     abort_read=NAME      it aborts on READ of a file of that name
 *     stuck_lookup=GLOB    the thread that is to answer LOOKUP of such a name in the root asks its own mount for it,
 *                          and hangs in the kernel
 *
 * separated by commas. "@G" after one restricts it to the G-th server of the mount. The faults of the source (see
 * fs/store/fault.c) are in DEALFS_SOURCE_FAULTS. */
#ifndef FS_SERVER_FAULTS_H
#define FS_SERVER_FAULTS_H

#include "fs/attach/config.h"
#include "fs/fuse/data.h"

/* The operations of the data mount, with the faults put around them; it aborts or hangs here where that is asked. */
const struct fuse_lowlevel_ops *faults_apply(const struct mount_config *config, uint32_t generation);

#endif
