/* READs of a stream, in the control mount. */
#ifndef FS_CONTROL_STREAM_READS_H
#define FS_CONTROL_STREAM_READS_H

#include <fuse_lowlevel.h>
#include <stdbool.h>

struct epoch_stream;
struct request_job;

/* Replies if the bytes are available at once. The job has offset and size. */
bool stream_read_now(fuse_req_t req, struct epoch_stream *stream, const struct request_job *job);
void stream_read_wait(struct request_job *job, struct epoch_stream *stream); /* waits, and replies */

#endif
