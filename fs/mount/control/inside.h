/* What the parts of the control mount share. Not for others: they include control.h.
 *
 * Threads: the session's threads call the operations, any number at once; one thread of control writes metrics_file.
 * What stands in `struct control` is set by control_create and does not change, but for what has a lock of its own:
 * handles, refusals, samples; and for what control_fill sets, which is only looked at after control_filled. None of
 * these locks is held while another is taken, except a handle's own, under which a refusal may be noted. */
#ifndef FS_MOUNT_CONTROL_INSIDE_H
#define FS_MOUNT_CONTROL_INSIDE_H

#include "fs/mount/control/control.h"
#include "fs/mount/control/handles.h"
#include "fs/mount/control/files.h"
#include "fs/mount/control/lists.h"
#include "fs/mount/control/owners.h"
#include "fs/mount/control/plans.h"
#include "fs/mount/control/refusals.h"
#include "fs/mount/control/request.h"

#include <pthread.h>
#include <stdatomic.h>

struct control {
    struct control_config config;
    char host[256];
    uint64_t began;          /* clock_now of this server */
    const char *prefixes[3]; /* absolute paths in requests begin with one of these; NULL-terminated */
    atomic_bool filled;      /* config.catalog, config.store, samples and extents are set */
    struct samples_table *samples;
    struct extents *extents;
    struct handles *handles;
    struct refusals refusals;
    struct owner_cache owners;
    struct plans plans;
    struct files files;
    atomic_size_t pool; /* bytes of the requests that are being written or run */

    _Atomic uint64_t stage_told; /* clock_now when the other nodes were last told to stage */

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

bool control_filled(const struct control *control);

/* The verbs, one file each; verbs.c has the table of them. */
extern const struct verb verb_where, verb_samples, verb_stage, verb_umount, verb_plan;
extern const struct verb *const control_verbs[];
extern const struct stream_rules control_stream_rules; /* user: struct handle */
enum { REQUEST_MOST = 1 << 30 };                       /* bytes of payload, for verbs that take long ones */

/* Does nobody wait for the reply to this fuse_req_t any more? */
bool control_gave_up(void *req);
void control_note_refused(struct control *control, const struct fuse_ctx *who, const char *line, size_t n, int error,
                          const char *why);

/* Run one whole request. */
int control_run(struct control *control, const char *bytes, size_t n, const struct asker *asker, struct str *reply,
                struct str *why);

/* Numbers of the store; all zero where there is none. */
void control_stats(struct control *control, struct store_stats *stats);
struct json;
void control_add_stage(struct control *control, struct json *json, const char *key);
void control_add_plans(struct json *json, struct control *control);
void control_add_quoted(struct str *text, const char *word); /* for a shell */
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

/* The tree's fixed inodes. Numbers with INO_LIST set are sample lists, others with INO_REQUEST the files below plan/. */
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
    INO_PLAN,
};

void control_stat_file(const struct control *control, uint64_t ino, off_t size, struct stat *st);

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
