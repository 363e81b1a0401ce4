/* What the parts of the control mount share. Not for others: they include control.h.
 *
 * Threads: the session's threads call the operations, any number at once; one thread of control writes metrics_file.
 * What stands in `struct control` is set by control_create and does not change, but for what has a lock of its own:
 * handles, refusals, samples. None of these locks is held while another is taken, except a handle's own, under which a
 * refusal may be noted. */
#ifndef FS_MOUNT_CONTROL_INSIDE_H
#define FS_MOUNT_CONTROL_INSIDE_H

#include "fs/mount/control/control.h"
#include "fs/mount/control/handles.h"
#include "fs/mount/control/lists.h"
#include "fs/mount/control/refusals.h"
#include "fs/mount/control/request.h"

#include <pthread.h>
#include <stdatomic.h>

struct control {
    struct control_config config;
    char host[256];
    uint64_t began;          /* clock_now of this server */
    const char *prefixes[3]; /* absolute paths in requests begin with one of these; NULL-terminated */
    struct samples_table *samples;
    struct handles *handles;
    struct refusals refusals;
    atomic_size_t pool; /* bytes of the requests that are being written or run */

    pthread_t writer; /* of metrics_file */
    bool writing;     /* there is one */
    atomic_int writer_error;
    pthread_mutex_t writer_lock; /* of writer_stop */
    pthread_cond_t writer_wake;  /* writer_stop was set */
    bool writer_stop;
};

/* The files of the root that are generated when they are opened. */
int control_nodes(struct control *control, struct str *text);
int control_node(struct control *control, struct str *text);
int control_errors(struct control *control, struct str *text);

/* The verbs, one file each; verbs.c has the table of them. */
extern const struct verb verb_where, verb_samples, verb_stage;
extern const struct verb *const control_verbs[];
extern const struct stream_rules control_stream_rules; /* user: struct handle */
enum { REQUEST_MOST = 1 << 30 };                       /* bytes of payload, for verbs that take long ones */

/* Run one whole request. */
int control_run(struct control *control, const char *bytes, size_t n, const struct asker *asker, struct str *reply,
                struct str *why);

/* Numbers of the store; all zero where there is none. */
void control_stats(struct control *control, struct store_stats *stats);
struct json;
void control_add_stage(struct control *control, struct json *json, const char *key);
const char *control_version(void);
uint64_t control_memory(void); /* anonymous memory of this process, bytes */
uint32_t control_keeper(const struct control *control);

/* Operations on open files, for the table in tree.c. */
void control_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void control_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi);
void control_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
                   struct fuse_file_info *fi);
void control_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void control_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);

/* The tree's fixed inodes. A later folder of request files (plan/KEY=VALUE,…) takes the next number; numbers with
 * INO_LIST set are sample lists. */
enum {
    INO_ROOT = FUSE_ROOT_ID,
    INO_CONTROL,
    INO_STATUS,
    INO_METRICS,
    INO_SAMPLES,
    INO_SAMPLES_D,
    INO_NODES,
    INO_NODE,
    INO_ERRORS,
};

struct entry {
    const char *name;
    uint64_t ino;
    mode_t mode;
    int (*generate)(struct control *control, struct str *text); /* NULL: not a file of this kind */
};
const struct entry *control_entry(uint64_t ino); /* NULL: none */

/* The list behind `samples` or a file of samples.d: a reference, or NULL. */
struct samples *control_list(struct control *control, uint64_t ino);

#endif
