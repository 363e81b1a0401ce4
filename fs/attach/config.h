/* A mount's configuration: what the command decided, for the keeper and every server of the mount.
 *
 * It has lines `key=value`, with percent-encoded values. Keepers and servers have it as sealed memory. `config` in the
 * state directory has the same contents, for people and for commands that may not read the keeper's descriptors. A
 * process must not trust another user's configuration without checking who owns what it names. */
#ifndef FS_ATTACH_CONFIG_H
#define FS_ATTACH_CONFIG_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mount_config {
    char *source, *mountpoint; /* absolute, resolved */
    char *source_identity;     /* attach_identify of the source; NULL: unknown */
    char *state;               /* the state directory */
    char *control; /* the control mount's path: MOUNTPOINT/.dealfs, STATE/control, or the user's control=DIR */
    bool nested;   /* it is MOUNTPOINT/.dealfs; otherwise .dealfs is a symlink to it */
    /* minor numbers of the two mounts' devices, so that no other mount is removed */
    uint32_t data_minor, control_minor;
    uint64_t ram_bytes; /* capacity of the RAM tier; 0: none */
    char *ram_path;     /* NULL: the detached tmpfs at FD_RAM; else our folder below /dev/shm */
    uint64_t ssd_bytes; /* capacity of the SSD tier; 0: none */
    char *ssd_path;     /* our folder in the SSD directory */
    int zstd_level;     /* 0: off */
    bool verify_once;   /* reads from the RAM tier verify a value once, not at every read */
    int source_threads;
    uint64_t source_rate;    /* maximum bytes per second that are read from the source; 0: unlimited */
    uint64_t peer_timeout;   /* nanoseconds */
    uint64_t decoded;        /* maximum bytes of cached decoded images */
    uint64_t readahead;      /* maximum bytes that the kernel reads ahead */
    uint64_t request_memory; /* maximum bytes for requests of the control mount */
    bool exchange;           /* leave room free, so that samples can move */
    uint64_t exchange_rate;  /* maximum bytes per second that this node receives while samples move; 0: unlimited */
    uint64_t feed;           /* maximum bytes that the feeder may be ahead of the loaders; 0: no feeder */
    int sampler_ranks;       /* of the predicted DistributedSampler; 0: no prediction */
    int sampler_batch;
    uint64_t sampler_seed;
    bool sampler_drop;   /* tail=drop */
    char *sampler_under; /* the directory of its dataset; NULL: the root */
    char *metrics_file;  /* NULL: none */
    uid_t owner_uid;     /* owner of the control file; the server runs as this user */
    gid_t owner_gid;
    bool allow_other;
    bool foreground; /* log to stderr, unmount when the command ends */
    bool syslog;
    bool wait_join;      /* there is no catalog before the first join, which brings it */
    int rescan;          /* enum rescan: how the catalog is made if no node has one */
    bool identity_mtime; /* compare files without their ctime */
    int resize, quality; /* images are scaled to this many pixels, with this quality; 0: unchanged */
    int groups;          /* of its world; 0: as configured on other nodes */
    char *mounter;       /* socket of the dealfs-mounter that made the mount for processes without rights; NULL: none */
    bool foreign_pids; /* which is in another namespace of process ids: the kernel's requests name no process of ours */
    char *id;          /* the node's id: 32 hexadecimal digits, kept in the state directory across mounts */
};

#define DECODED_DEFAULT (UINT64_C(32) << 20)
#define REQUEST_MEMORY_DEFAULT (UINT64_C(256) << 20)
#define READAHEAD_LEAST (UINT64_C(4) << 10)
#define READAHEAD_MOST (UINT64_C(1) << 20) /* maximum length of a READ */
#define FEED_DEFAULT (UINT64_C(256) << 20)

int config_write(const struct mount_config *config);         /* to STATE/config, atomically */
int config_seal(const struct mount_config *config, int *fd); /* to sealed memory */
/* 0; -ENOENT; -EBADMSG: not a complete configuration. On failure `config` is empty. */
int config_read(const char *state, struct mount_config *config);
int config_read_sealed(int fd, struct mount_config *config); /* -EPERM: it is not sealed */
/* The text in the sealed memory of a keeper or dealfs-mounter; -EPERM: it is not sealed. Another user's process may
 * have anything there, which may hang on close: let a child call this (cli/base/guard.h). */
int config_text_of(pid_t process, struct str *text);
int config_parse(struct str *text, struct mount_config *config); /* changes the text */
/* From a keeper's sealed memory; if this process may not read that, from STATE/config. Root never reads the latter,
 * since another user may have written it. */
int config_of_keeper(pid_t keeper, const char *state, struct mount_config *config);
void config_fini(struct mount_config *config);
#define CLEANUP_CONFIG __attribute__((cleanup(config_fini)))

#endif
