/* Spans that cross extents: each extent may have an owner of its own, so such a read is two. */
#ifndef FS_STORE_SPLIT_H
#define FS_STORE_SPLIT_H

#include "fs/store/store.h"

/* Move what a layer answered behind `to`; -EIO: it is not exactly span->length bytes, or too many pieces: released. */
int answer_append(struct answer *to, struct answer *from, const struct span *span);

static inline bool span_crosses(const struct span *span)
{
    return span->offset / EXTENT_BYTES != (span->offset + span->length - 1) / EXTENT_BYTES;
}

/* Read both halves by `one` (as store_read: it returns, or calls the half's `done`); then `joined` is called once, with
 * the whole answer in `whole`. -EINPROGRESS or -ENOMEM. */
int split_read(struct store_read *whole, int (*one)(void *user, struct store_read *half),
               void (*joined)(void *user, struct store_read *whole, int error), void *user);

#endif
