/* The comparison that settles a doubt (doubts.h). */
#ifndef FS_STORE_PROOF_H
#define FS_STORE_PROOF_H

#include "fs/store/answer.h"

struct store;

/* A cached value, drawn at random: 0. -ENOENT: none is cached. -EBUSY: that is not known, because a tier is not open
 * yet or does not answer. -ESHUTDOWN. Waits, but not for a hanging SSD. Call it on a thread of the loader. */
int proof_draw(struct store *store, uint32_t file, struct span *span, struct answer *answer);
/* Are these the bytes of the drawn value? */
bool proof_equal(const struct answer *drawn, const char *bytes, size_t n);
/* It has changed: drop its data, and log that. `scanned`: before the scan, so the source has the right bytes. */
void proof_drop(struct store *store, uint32_t file, bool scanned);

#endif
