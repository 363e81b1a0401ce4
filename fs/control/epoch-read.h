/* Reads from a stream. */
#ifndef FS_CONTROL_EPOCH_READ_H
#define FS_CONTROL_EPOCH_READ_H

#include "fs/control/epoch-stream.h"

#include <stddef.h>

struct store;

struct stream_waiter {
    bool (*gave_up)(void *user); /* true: nobody waits any more */
    void *user;
};
/* Read n bytes at the offset; the stream has all of them. Waits. -EINTR: the waiter gave up; else the store's error for
 * one of the samples. */
int epoch_stream_read(const struct epoch_stream *stream, struct store *store, const struct stream_waiter *waiter,
                      uint64_t offset, size_t n, char *to);
/* The same for n bytes of a file of the catalog. */
int stream_read_file(struct store *store, const struct stream_waiter *waiter, uint32_t file, uint64_t offset, size_t n,
                     char *to);

#endif
