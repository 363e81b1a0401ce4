/* What the parts of the control mount share. Not for others: they include control.h.
 *
 * Threads: the session's threads call the operations, any number at once; what takes long they leave to the workers;
 * one thread of control writes metrics_file, another looks at other nodes' sample lists.
 *
 * What stands in `struct control` is set by control_create and does not change. Not so what has a lock of its own:
 * handles, owners, plans, files, refusals, samples, snapshots, workers; and what control_fill sets, which is
 * only looked at after control_filled. None of these locks is held while another is taken, except a handle's own, under
 * which a refusal may be noted and memory charged; and the budget's, which is taken under any. */
#ifndef FS_CONTROL_CONTROL_PRIVATE_H
#define FS_CONTROL_CONTROL_PRIVATE_H

#include "fs/control/budget.h"
#include "fs/control/control.h"
#include "fs/control/kept.h"
#include "fs/control/refusals.h"
#include "fs/resize/originals.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct control {
    struct control_config config;
    char host[256];
    uint64_t began;                /* clock_now of this server */
    struct outcome_counts resized; /* of config.derived */
    const char *prefixes[3];       /* absolute paths in requests begin with one of these; NULL-terminated */
    atomic_bool filled;            /* config.catalog, config.store, public, samples and extents are set */
    bool public;                   /* everybody may read everything in the catalog, and so may know all names */
    struct samples_table *samples;
    struct extents *extents;
    struct control_handles *handles;
    struct workers *workers;
    atomic_int parked; /* reads that wait for another one's request on the same handle */
    struct refusals refusals;
    struct kept owners; /* the last owner_table */
    struct plans *plans;
    pthread_mutex_t feed_lock;   /* of the plans in config.feed, against other threads of this server */
    _Atomic uint64_t feed_began; /* when this server was first asked for a plan that is fed; 0: never */
    struct plan_files *files;
    struct epoch_ahead *ahead;
    struct snapshots *snapshots;
    struct pictures *pictures;
    struct budget budget;
    struct budget record_room; /* bytes in files, for plans of record lists: plan-memory.h */
    struct sharing *sharing;
    struct index_parts *parts;

    _Atomic uint64_t stage_told; /* clock_now when the other nodes were last told to stage */

    pthread_t writer; /* of metrics_file */
    bool writing;     /* there is one */
    atomic_int writer_error;
    pthread_mutex_t writer_lock; /* of writer_stop */
    pthread_cond_t writer_wake;  /* writer_stop was set */
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

/* The mount's owner, or root. */
bool control_is_owner(const struct control *control, uid_t uid);
/* Nothing yet, for what is made because this user asks. */
struct charge control_charge(struct control *control, uid_t uid);

/* For the file `errors`: which request was rejected or abandoned, and why. */
void control_note(struct control *control, const struct fuse_ctx *who, int error, const char *why, const char *line,
                  size_t n);
/* The same of a request of the kernel; `why` may be empty. */
void control_note_request(fuse_req_t req, int error, const struct str *why, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* A part of a text. */
void control_reply_part(fuse_req_t req, const struct reply *reply, size_t size, uint64_t offset);

/* Numbers of the store; all zero where there is none. */
void control_stats(struct control *control, struct store_stats *stats);
/* The path of a file, for texts that everybody may read. False: other users may not know it, or there is no such file.
 * `path` has room for CATALOG_PATH_MAX bytes. */
bool control_path_shown(const struct control *control, uint64_t file, char *path);
uint64_t control_memory(void); /* anonymous memory of this process, bytes */
/* Of an error that the store has kept, whichever its sign. */
static inline const char *control_error_text(int error)
{
    return strerror(error < 0 ? -error : error);
}

#endif
