/* Reads ahead in streams that are read from start to end, and drops their pages behind the reader.
 *
 * The kernel asks for 1 MiB, which is too little if records come from other nodes or slow storage. So threads gather
 * the next blocks of the stream into buffers, from which READs are answered. The kernel's pages far behind the reader
 * are dropped: a stream is usually read once, and is as long as an epoch. */
#ifndef FS_CONTROL_EPOCH_AHEAD_H
#define FS_CONTROL_EPOCH_AHEAD_H

#include "fs/control/epoch-read.h"
#include "fs/fuse/session.h"

struct epoch_ahead;

int epoch_ahead_create(struct epoch_ahead **ahead);
/* Stop reading ahead. While the session still answers READs, waits up to a second for pages that are being dropped. */
void epoch_ahead_stop(struct epoch_ahead *ahead);
void epoch_ahead_destroy(struct epoch_ahead *ahead); /* waits for its threads */
/* Frees streams that were not read lately, and their buffers; `all`: also buffers of readers that pause. False: there
 * was no such stream. */
bool epoch_ahead_forget(struct epoch_ahead *ahead, bool all);

struct ahead_read {
    struct epoch_stream *stream;
    struct stream_access access;
    struct session *session; /* the session of the stream's file, and its inode number there */
    uint64_t ino;
    uint64_t offset;
    size_t n; /* the stream has all of these bytes */
};
/* Records that a READ has arrived, and starts gathering what follows it. */
void epoch_ahead_note(struct epoch_ahead *ahead, const struct ahead_read *read);

/* The bytes of a READ in buffers; valid until epoch_ahead_put. */
struct ahead_piece {
    const char *bytes[2];
    size_t n[2];
    int block[2];
};
/* 0; -EAGAIN: the bytes are missing. `wait`: wait for blocks that are being gathered. -EINTR: the reader gave up. */
int epoch_ahead_get(struct epoch_ahead *ahead, const struct ahead_read *read, bool wait, struct ahead_piece *piece);
void epoch_ahead_put(struct epoch_ahead *ahead, const struct ahead_read *read, const struct ahead_piece *piece);

#endif
