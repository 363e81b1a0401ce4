/* The data mount before it has a catalog (wait_join): what can be answered without one is, everything else waits in the
 * server until the gate is opened, and is then answered as ever. */
#ifndef FS_MOUNT_GATE_H
#define FS_MOUNT_GATE_H

#include "fs/mount/config.h"
#include "fs/mount/data.h"

struct gate;

/* `below`: what answers once it is open. Its userdata, a struct data_mount, is the first thing in the gate. */
int gate_create(const struct mount_config *config, const char *control, const struct fuse_lowlevel_ops *below,
                struct gate **gate);
/* Once, from any thread, which answers what waited. */
void gate_open(struct gate *gate, const struct catalog *catalog, struct store *store);
/* What still waits gets ENOTCONN. The session has stopped. */
void gate_close(struct gate *gate);
void gate_destroy(struct gate *gate);

extern const struct fuse_lowlevel_ops gate_ops; /* userdata: struct gate */

#endif
