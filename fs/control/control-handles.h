/* Open files of the control mount: streams, snapshots of generated files, and lists, which must exist while they are
 * open.
 *
 * The kernel keeps a handle when a new server takes over. Its upper half is the generation of the server that created
 * it, so that another server replies ESTALE and never takes it for its own. */
#ifndef FS_CONTROL_CONTROL_HANDLES_H
#define FS_CONTROL_CONTROL_HANDLES_H

#include "fs/catalog/samples.h"
#include "fs/control/stream.h"

#include <fuse_lowlevel.h>
#include <pthread.h>

struct control;

enum { HANDLES_MOST = 1024, HANDLES_OTHERS = 512 }; /* others: maximum for all users except the owner */

/* A read that arrived while another thread runs the request. */
struct parked_read {
    fuse_req_t req;
    size_t size;
    uint64_t offset;
    struct stream_piece piece; /* its answer, once the request is done */
    struct parked_read *next;
};

struct control_handle {
    struct control *control;
    bool other;           /* opened by a user other than the mount's owner */
    struct reply *text;   /* a snapshot */
    struct samples *list; /* a sample list; if both are NULL: a stream */
    pthread_mutex_t lock; /* guards all fields below */
    struct stream stream;
    struct parked_read *parked; /* newest first */
    uid_t uid;                  /* user of the last write */
    pid_t pid;
    unsigned references; /* guarded by the table's lock */
};

struct control_handles;

/* Streams follow `rules`, whose user is the handle. */
int handles_create(struct control *control, const struct stream_rules *rules, struct control_handles **handles);
void handles_destroy(struct control_handles *handles); /* only when no operation runs */

/* Open a text or a list, and take a reference to it; both NULL: a stream. `other`: for a user other than the mount's
 * owner. 0; -ENFILE, -ENOMEM. */
int handles_open(struct control_handles *handles, bool other, struct reply *text, struct samples *list, uint64_t *fh);
/* Take a reference for one operation. 0, or -ESTALE. */
int handles_get(struct control_handles *handles, uint64_t fh, struct control_handle **handle);
void handles_put(struct control_handles *handles, struct control_handle *handle);
void handles_visit(struct control_handles *handles,
                   void (*visit)(struct control_handle *handle)); /* for each open handle */
/* The file was closed: drop the table's reference. Ignores unknown handles. */
void handles_close(struct control_handles *handles, uint64_t fh);
/* Was it created by this server? Does not look into the table. 0 or -ESTALE. */
int handles_check(const struct control_handles *handles, uint64_t fh);

#endif
