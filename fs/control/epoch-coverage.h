/* What loaders have read of their lists as streams, which only the server sees. It is reported as other lists are, in
 * `epochs` and by `end`.
 *
 * The first READ of a stream begins the report of its rank's list. Streams of several workers have one report together.
 * A READ that begins close to what was read before extends that: so the kernel's readahead, up to 2 MiB, counts as
 * read. A loader that knows better says so by `at` and `end`. What is read at random counts as nothing.
 *
 * A list ends when all of it was read, or by `end`. The lists are in the memory of the mount: the next server goes on
 * with them. Any thread. */
#ifndef FS_CONTROL_EPOCH_COVERAGE_H
#define FS_CONTROL_EPOCH_COVERAGE_H

#include "fs/control/epoch-stream.h"
#include "fs/control/feed-table.h"

/* A READ of the mount's owner gets its answer, or an error. */
void epoch_coverage_read(struct control *control, const struct epoch_stream *stream, uint64_t offset, size_t n,
                         int error);
/* As feed_table_told and feed_table_end. -ENOENT: no stream of this list has been read. */
int epoch_coverage_told(struct control *control, const struct feed_end *at, uint64_t read);
int epoch_coverage_end(struct control *control, struct feed_end *end);
void epoch_coverage_publish(struct control *control); /* the reports, for `epochs` */

#endif
