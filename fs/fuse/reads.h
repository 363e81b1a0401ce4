/* READs of the data mount: passes them to the store, answers them, and limits how many wait.
 *
 * The kernel sends READs of the page cache in the background, at most max_background of the connection at a time. If
 * all of these wait for a hanging source, no READ of any file is sent any more. So waiting readahead is returned
 * before: if for a second it was more than half of the limit, or locked too much memory, the oldest is answered with an
 * error. The kernel then unlocks its pages without bytes; no process sees the error. A process that needs the pages
 * asks again in the foreground, folio by folio, outside of the limit, and waits.
 *
 * Direct I/O is not readahead and cannot be returned, so the kernel must not send it in the background: data.c does not
 * request FUSE_CAP_ASYNC_DIO, and io_submit waits for each such read. Each foreground read takes a slot
 * (fs/wire/lane.h); waiting reads of a user beyond the user's share of the slots fail with EBUSY. */
#ifndef FS_FUSE_READS_H
#define FS_FUSE_READS_H

#include <fuse_lowlevel.h>

#include "fs/store/store.h"

struct feed;
struct reads;

/* `limit`: READs that the kernel sends in the background. `feed` identifies the feeder, and gets the number of its
 * READs in progress. */
int reads_create(unsigned limit, struct feed *feed, struct reads **reads);
void reads_stop(struct reads *reads);    /* nothing is returned any more; call it before the store is closed */
void reads_destroy(struct reads *reads); /* only when nothing waits */

struct reads_request {
    fuse_req_t req;
    struct span span; /* the existing part of `size`, which the kernel asked for */
    size_t size;
    const struct fuse_file_info *info; /* NULL: no longer available */
};
/* Answers the request, now or later. */
void reads_begin(struct reads *reads, struct store *store, const struct reads_request *request);
/* Nobody waits for the READ with this number: answer it now. False: it does not wait, or is just ending. For
 * session_config. */
bool reads_cancel(void *reads, uint64_t unique);

#endif
