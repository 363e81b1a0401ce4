/* Reads from a tier: the bytes of a span, checked (see verify_once), in place. The answer has pins on what it points
 * into: segments, and buffers of read or decompressed bytes.
 *
 * A value that fails verification is dropped and counted, and its part is no longer cached. */
#ifndef FS_STORE_TIER_READ_H
#define FS_STORE_TIER_READ_H

#include "fs/store/stock.h"

/* 0, or -ENOENT: some of it is not cached here. */
int tier_read(struct stock *k, const struct span *span, struct answer *answer);
/* The span's values, from its first one, as long as they are cached here: 0, or -ENOENT: the first is not. */
int tier_read_stored(struct stock *k, const struct span *span, struct values_out *out);
/* Verify a value's checksum, also if it was verified before. Returns its stored bytes; 0: it is not cached here, or it
 * was damaged and is dropped. */
uint64_t tier_scrub(struct stock *k, const struct span *value);

#endif
