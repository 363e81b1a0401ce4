/* Reading from a tier: the bytes of a span, checked, where they lie. Whatever the answer points into goes with it, as
 * its pins: segments, buffers of what was read or decompressed.
 *
 * A value that does not verify is dropped and counted, and its part is held no more. */
#ifndef FS_STORE_TIER_READ_H
#define FS_STORE_TIER_READ_H

#include "fs/store/stock.h"

/* 0, or -ENOENT: not all of it is held here. */
int tier_read(struct stock *k, const struct span *span, struct answer *answer);
/* The span's values, which begins with one, as long as they are held here: 0, or -ENOENT: not even the first. */
int tier_read_stored(struct stock *k, const struct span *span, struct values_out *out);

#endif
