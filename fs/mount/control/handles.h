/* Open files of the control mount: streams, snapshots of generated files, and lists that must not go while they are
 * open.
 *
 * The kernel keeps a handle across servers of a mount; its upper half is the generation of the server that gave it out,
 * so that another server says ESTALE and never takes it for one of its own. */
#ifndef FS_MOUNT_CONTROL_HANDLES_H
#define FS_MOUNT_CONTROL_HANDLES_H

#include "fs/catalog/samples.h"
#include "fs/mount/control/stream.h"

#include <fuse_lowlevel.h>
#include <pthread.h>

struct control;

enum { HANDLES_MOST = 1024 };

/* A read that came while another thread runs the request. */
struct parked {
    fuse_req_t req;
    size_t size;
    uint64_t offset;
    struct stream_piece piece; /* its answer, once the request is done */
    struct parked *next;
};

struct handle {
    struct control *control;
    struct reply *text;   /* a snapshot, made at open */
    struct samples *list; /* a sample list; neither of the two: a stream */
    pthread_mutex_t lock; /* of all below */
    struct stream stream;
    struct parked *parked; /* newest first */
    uid_t uid;             /* who wrote last */
    pid_t pid;
    unsigned references; /* handles' lock */
};

struct handles;

int handles_create(struct control *control, uint32_t generation, struct handles **handles);
void handles_destroy(struct handles *handles); /* no operation runs any more */

/* A snapshot of `text`, which it takes over; or of `list`, which it takes a reference to; or, with both
 * NULL, a stream. 0; -ENFILE, -ENOMEM. */
int handles_open(struct handles *handles, struct str *text, struct samples *list, uint64_t *fh);
/* A reference for one operation. 0, or -ESTALE. */
int handles_get(struct handles *handles, uint64_t fh, struct handle **handle);
void handles_put(struct handles *handles, struct handle *handle);
/* The file was closed: the table's own reference. An unknown handle is none of ours. */
void handles_close(struct handles *handles, uint64_t fh);
/* Of which server is it? Without a look at the table. 0 or -ESTALE. */
int handles_check(const struct handles *handles, uint64_t fh);

#endif
