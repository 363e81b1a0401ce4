/* The data mount before it has a catalog (wait_join). It answers what needs no catalog. Other requests wait in the
 * server until the gate is opened, and are then answered as usual. */
#ifndef FS_FUSE_GATE_H
#define FS_FUSE_GATE_H

#include "fs/fuse/data.h"

struct gate;

struct gate_config {
    uid_t uid; /* owner of the root until the catalog is known */
    gid_t gid;
    const struct data_mount *mount; /* its catalog and store are set by gate_open */
    /* Operations after opening. Their userdata, a struct data_mount, is the first field of the gate. */
    const struct fuse_lowlevel_ops *below;
};

int gate_create(const struct gate_config *config, struct gate **gate);
/* Called once, by any thread; answers the parked requests. */
void gate_open(struct gate *gate, const struct catalog *catalog, struct store *store);
/* Parked requests get ENOTCONN. Call it when the session has stopped. */
void gate_close(struct gate *gate);
void gate_destroy(struct gate *gate);

extern const struct fuse_lowlevel_ops gate_ops; /* userdata: struct gate */

#endif
