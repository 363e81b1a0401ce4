/* Open files of the control mount: streams, snapshots of generated files, and lists that must not go while they are
 * open.
 *
 * The kernel keeps a handle across servers of a mount; its upper half is the generation of the server that gave it out,
 * so that another server says ESTALE and never takes it for one of its own. */
#ifndef FS_CONTROL_CONTROL_HANDLES_H
#define FS_CONTROL_CONTROL_HANDLES_H

#include "fs/catalog/samples.h"
#include "fs/control/stream.h"

#include <fuse_lowlevel.h>
#include <pthread.h>

struct control;

enum { HANDLES_MOST = 1024, HANDLES_OTHERS = 512 }; /* others: at most so many of them users but the owner have */

/* A read that came while another thread runs the request. */
struct parked_read {
    fuse_req_t req;
    size_t size;
    uint64_t offset;
    struct stream_piece piece; /* its answer, once the request is done */
    struct parked_read *next;
};

struct control_handle {
    struct control *control;
    bool other;           /* its opener is not the mount's owner */
    struct reply *text;   /* a snapshot */
    struct samples *list; /* a sample list; neither of the two: a stream */
    pthread_mutex_t lock; /* of all below */
    struct stream stream;
    struct parked_read *parked; /* newest first */
    uid_t uid;                  /* who wrote last */
    pid_t pid;
    unsigned references; /* handles' lock */
};

struct control_handles;

/* Streams go by the rules, their user being the handle. */
int handles_create(struct control *control, const struct stream_rules *rules, struct control_handles **handles);
void handles_destroy(struct control_handles *handles); /* no operation runs any more */

/* A text or a list, which it takes a reference to; or, with both NULL, a stream. `other`: for another user than the
 * mount's owner. 0; -ENFILE, -ENOMEM. */
int handles_open(struct control_handles *handles, bool other, struct reply *text, struct samples *list, uint64_t *fh);
/* A reference for one operation. 0, or -ESTALE. */
int handles_get(struct control_handles *handles, uint64_t fh, struct control_handle **handle);
void handles_put(struct control_handles *handles, struct control_handle *handle);
void handles_visit(struct control_handles *handles,
                   void (*visit)(struct control_handle *handle)); /* each that is open */
/* The file was closed: the table's own reference. An unknown handle is none of ours. */
void handles_close(struct control_handles *handles, uint64_t fh);
/* Of which server is it? Without a look at the table. 0 or -ESTALE. */
int handles_check(const struct control_handles *handles, uint64_t fh);

#endif
