/* Reads from a stream. */
#ifndef FS_CONTROL_EPOCH_READ_H
#define FS_CONTROL_EPOCH_READ_H

#include "fs/control/epoch-stream.h"

#include <stddef.h>

struct record_cuts;
struct store;

/* How to read: from where, and until when. */
struct stream_access {
    struct store *store;
    bool (*gave_up)(void *user); /* true: nobody waits any more */
    void *user;
    struct record_cuts *cuts; /* NULL: nothing is kept for other reads */
};
/* Read n bytes at the offset; the stream has all of them. Waits. -EINTR: nobody waits any more; else the store's error
 * for one of the samples. */
int epoch_stream_read(const struct epoch_stream *stream, const struct stream_access *access, uint64_t offset, size_t n,
                      char *to);
/* The same for n bytes of a file of the catalog. */
int stream_read_file(const struct stream_access *access, uint32_t file, uint64_t offset, size_t n, char *to);

#endif
