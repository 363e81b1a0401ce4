/* A mount's configuration: what the command decided, for the keeper and every server of the mount.
 *
 * Kept as `config` in the state directory: a line `key=value` each, values percent-coded. */
#ifndef FS_MOUNT_CONFIG_H
#define FS_MOUNT_CONFIG_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mount_config {
    char *source, *mountpoint; /* absolute, resolved */
    char *state;               /* the state directory */
    char *control;             /* where the control mount is mounted: STATE/control, or the user's control=DIR */
    bool nested;               /* it is also bound on MOUNTPOINT/.dealfs; else .dealfs is a symlink to `control` */
    uint64_t ram_bytes;        /* capacity of the RAM tier; 0: none */
    char *ram_path;            /* NULL: the detached tmpfs at FD_RAM; else a folder of ours below /dev/shm */
    uint64_t ssd_bytes;        /* capacity of the SSD tier; 0: none */
    char *ssd_path;            /* our folder in the SSD directory */
    int zstd_level;            /* 0: off */
    int source_threads;
    uint64_t peer_timeout; /* nanoseconds */
    char *metrics_file;    /* NULL: none */
    uid_t owner_uid;       /* whom the control file belongs to, and as whom the server runs */
    gid_t owner_gid;
    bool allow_other;
    bool foreground; /* log to stderr, unmount when the command ends */
    bool syslog;
    bool wait_join;  /* no catalog before the first join, which brings it */
    int rescan;      /* enum rescan: how that catalog is made where nobody has one */
    int groups;      /* of its world; 0: as the others have it */
    char *id; /* the node's id: 32 hexadecimal digits, kept in the state directory across mounts */
};

int config_write(const struct mount_config *config); /* to STATE/config, atomically */
/* 0; -ENOENT; -EBADMSG: not a configuration, or not a whole one. On failure `config` is empty. */
int config_read(const char *state, struct mount_config *config);
void config_fini(struct mount_config *config);

#endif
