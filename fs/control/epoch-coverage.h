/* Coverage of streams: what loaders have read of their lists as streams, which only the server sees. It is reported
 * like that of other lists, in `epochs` and by `end`.
 *
 *   1. The first READ of a stream begins the report of its rank's list. Streams of several workers share one report.
 *   2. A READ that begins close to what was read before extends that. So the kernel's readahead, up to 2 MiB, counts as
 *      read. A loader that knows better reports its position with `at` and `end`.
 *   3. Random reads count as nothing.
 *   4. A list ends when all of it was read, or by `end`.
 *
 * The lists are in the memory of the mount, so that the next server continues them. Any thread. */
#ifndef FS_CONTROL_EPOCH_COVERAGE_H
#define FS_CONTROL_EPOCH_COVERAGE_H

#include "fs/control/epoch-stream.h"
#include "fs/control/feed-table.h"

/* Call it before the owner's READ gets its answer, or an error. */
void epoch_coverage_read(struct control *control, const struct epoch_stream *stream, uint64_t offset, size_t n,
                         int error);
/* Like feed_table_told and feed_table_end. -ENOENT: no stream of this list was read. */
int epoch_coverage_told(struct control *control, const struct feed_end *at, uint64_t read);
int epoch_coverage_end(struct control *control, struct feed_end *end);
void epoch_coverage_publish(struct control *control); /* publishes the reports for `epochs` */

#endif
