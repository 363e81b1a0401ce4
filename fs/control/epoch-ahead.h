/* Reading ahead of who reads a stream from its beginning to its end, and dropping the pages behind.
 *
 * The kernel asks for 1 MiB at a time, too little where records come from other nodes or from slow storage. So the next
 * blocks of the stream are gathered into buffers by threads of their own, and READs are answered from there. The
 * kernel's pages far behind the reader are dropped: a stream is mostly read once, and is as long as an epoch. */
#ifndef FS_CONTROL_EPOCH_AHEAD_H
#define FS_CONTROL_EPOCH_AHEAD_H

#include "fs/control/epoch-read.h"
#include "fs/fuse/session.h"

struct epoch_ahead;

int epoch_ahead_create(struct epoch_ahead **ahead);
/* Nothing is read ahead from now on. While the session still answers READs, pages that are being dropped are waited
 * for: for a second at most. */
void epoch_ahead_stop(struct epoch_ahead *ahead);
void epoch_ahead_destroy(struct epoch_ahead *ahead); /* waits for its threads */
void epoch_ahead_rest(struct epoch_ahead *ahead);    /* gives memory back that nobody has used lately */

struct ahead_read {
    struct epoch_stream *stream;
    struct store *store;
    struct session *session; /* of the stream's file, which is `ino` there */
    uint64_t ino;
    uint64_t offset;
    size_t n; /* all of which the stream has */
    bool (*gave_up)(void *user);
    void *user;
};
/* Notes that a READ has come, and has what follows it gathered. */
void epoch_ahead_note(struct epoch_ahead *ahead, const struct ahead_read *read);

/* The bytes of a READ in buffers: pieces until epoch_ahead_put. */
struct ahead_piece {
    const char *bytes[2];
    size_t n[2];
    int block[2];
};
/* 0; -EAGAIN: they are not there; with `wait`, those that are just being gathered are waited for. -EINTR: gave up. */
int epoch_ahead_get(struct epoch_ahead *ahead, const struct ahead_read *read, bool wait, struct ahead_piece *piece);
void epoch_ahead_put(struct epoch_ahead *ahead, const struct ahead_read *read, const struct ahead_piece *piece);

#endif
