/* The READs of the data mount: asked of the store, answered, and, while they wait, looked after.
 *
 * The kernel sends the page cache's READs in the background, and so many at a time and no more (the connection's
 * max_background). When all of these wait, for a source that hangs, nobody's READ is sent any more, whatever it is of.
 * So readahead that waits is given back before: when for a second it has been more than half of the limit, or more
 * memory than should be locked, the oldest is answered with an error. The kernel then unlocks its pages, without their
 * bytes; nobody hears of the error. Who wants them after all asks again in the foreground, a folio at a time, outside
 * of the limit, and waits.
 *
 * Direct I/O is no readahead and cannot be given back, so the kernel must not send it in the background: data.c does
 * not ask for FUSE_CAP_ASYNC_DIO, and io_submit waits for each such read. Reads in the foreground take a slot each
 * (fs/wire/lane.h): what one user has waiting beyond a share of them is refused with EBUSY. */
#ifndef FS_FUSE_READS_H
#define FS_FUSE_READS_H

#include <fuse_lowlevel.h>

#include "fs/store/store.h"

struct feed;
struct reads;

/* `limit`: how many READs the kernel sends in the background. The feed says who the feeder is, and is told what is in
 * hand of its READs. */
int reads_create(unsigned limit, struct feed *feed, struct reads **reads);
void reads_stop(struct reads *reads);    /* nothing is given back any more; before the store is closed */
void reads_destroy(struct reads *reads); /* nothing waits any more */

struct reads_request {
    fuse_req_t req;
    struct span span; /* what there is of `size`, which the kernel asked for */
    size_t size;
    const struct fuse_file_info *info; /* NULL: not known any more */
};
/* Answers the request, now or later. */
void reads_begin(struct reads *reads, struct store *store, const struct reads_request *request);
/* Nobody waits for the READ of this number any more: it leaves whatever it waits for and is answered. False: it does
 * not wait, or is just ending. For session_config. */
bool reads_cancel(void *reads, uint64_t unique);

#endif
