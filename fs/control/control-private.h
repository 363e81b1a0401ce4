/* Shared by the parts of the control mount. All others include control.h.
 *
 * Threads: any number of the session's threads call the operations; long work is left to the workers. One thread of
 * control writes metrics_file, another looks at other nodes' sample lists.
 *
 * control_create sets all fields of `struct control`; they are then constant. Exceptions: fields with their own lock
 * (handles, owners, plans, files, node_texts, refusals, samples, snapshots, workers), and the fields that control_fill
 * sets, which are used only after control_filled. None of these locks is held while another is taken, with two
 * exceptions: with a handle's lock, a refusal may be noted and memory charged; the budget's lock may be taken with any
 * other. */
#ifndef FS_CONTROL_CONTROL_PRIVATE_H
#define FS_CONTROL_CONTROL_PRIVATE_H

#include "fs/control/budget.h"
#include "fs/control/control.h"
#include "fs/control/kept.h"
#include "fs/control/node-texts.h"
#include "fs/control/refusals.h"
#include "fs/resize/originals.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct control {
    struct control_config config;
    char host[256];
    uint64_t began;                /* clock_now when this server started */
    struct outcome_counts resized; /* of config.derived */
    const char *prefixes[3];       /* absolute paths in requests begin with one of these; ends with NULL */
    atomic_bool filled;            /* config.catalog, config.store, public, samples and extents are set */
    bool public;                   /* every user may read everything in the catalog, and so may see all names */
    struct samples_table *samples;
    struct extents *extents;
    struct control_handles *handles;
    struct workers *workers;
    atomic_int parked; /* reads that wait for a request of another read on their handle */
    struct refusals refusals;
    struct kept owners; /* the last owner_table */
    struct plans *plans;
    pthread_mutex_t feed_lock;   /* guards the plans in config.feed against other threads of this server */
    _Atomic uint64_t feed_began; /* when a plan was first requested to be fed; 0: never */
    struct plan_files *files;
    struct node_texts node_texts;
    struct epoch_ahead *ahead;
    struct record_cuts *cuts;
    struct snapshots *snapshots;
    struct pictures *pictures;
    struct budget budget;
    struct budget record_room; /* bytes in files, for plans of record lists: plan-memory.h */
    struct sharing *sharing;
    struct index_parts *parts;

    _Atomic uint64_t stage_told; /* clock_now when the other nodes were last told to stage */

    pthread_t writer; /* writes metrics_file */
    bool writing;     /* `writer` exists */
    atomic_int writer_error;
    pthread_mutex_t writer_lock; /* guards writer_stop */
    pthread_cond_t writer_wake;  /* signals writer_stop */
    bool writer_stop;
};

struct pictures;
struct reply;

static inline struct control *control_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}
bool control_filled(const struct control *control);
#define CONTROL_NOT_FILLED "there is no catalog yet: this node waits for its first world, which brings it"

#define CONTROL_LAYOUT_LOST                                                                                            \
    "this server was restarted and does not know the current layout: plans fail until its courier is back or `dealfs " \
    "join` has formed a world again"

/* Is this the mount's owner, or root? */
bool control_is_owner(const struct control *control, uid_t uid);
/* An empty charge for memory that a request of this user needs. */
struct charge control_charge(struct control *control, uid_t uid);

/* For the file `errors`: record which request was rejected or abandoned, and why. */
void control_note(struct control *control, const struct fuse_ctx *who, int error, const char *why, struct str *line);
/* The same for a request of the kernel; `why` may be empty. */
void control_note_request(fuse_req_t req, int error, const struct str *why, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Reply with a part of a text. */
void control_reply_part(fuse_req_t req, const struct reply *reply, size_t size, uint64_t offset);

/* The store's counters; all zero if there is no store. */
void control_stats(struct control *control, struct store_stats *stats);
/* The path of a file, for texts that everybody may read. False: other users may not know it, or there is no such file.
 * `path` has room for CATALOG_PATH_MAX bytes. */
bool control_is_public(const struct control *control); /* as `public`, and the source has reduced no mode since */
bool control_path_shown(const struct control *control, uint64_t file, char *path);
bool control_inode_shown(const struct control *control, uint64_t ino, char *path); /* the same for any inode */
uint64_t control_memory(void); /* anonymous memory of this process in bytes */
/* Text of an error number from the store, of either sign. */
static inline const char *control_error_text(int error)
{
    return strerror(error < 0 ? -error : error);
}

#endif
