/* The data mount before it has a catalog (wait_join): what can be answered without one is, everything else waits in the
 * server until the gate is opened, and is then answered as usual. */
#ifndef FS_FUSE_GATE_H
#define FS_FUSE_GATE_H

#include "fs/fuse/data.h"

struct gate;

struct gate_config {
    uid_t uid; /* whom the root belongs to until the catalog says so */
    gid_t gid;
    const struct data_mount *mount; /* whose catalog and store come when it is opened */
    /* What answers once it is open. Its userdata, a struct data_mount, is the first thing in the gate. */
    const struct fuse_lowlevel_ops *below;
};

int gate_create(const struct gate_config *config, struct gate **gate);
/* Once, from any thread, which answers what waited. */
void gate_open(struct gate *gate, const struct catalog *catalog, struct store *store);
/* What still waits gets ENOTCONN. The session has stopped. */
void gate_close(struct gate *gate);
void gate_destroy(struct gate *gate);

extern const struct fuse_lowlevel_ops gate_ops; /* userdata: struct gate */

#endif
