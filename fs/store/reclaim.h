/* Reclaim: when a quarter of a segment is dead, its live values move to a new segment, and the file is dropped. Many
 * small segments are merged likewise: each costs a file. (They arise when little is read for a while.) Only the tier's
 * thread calls this. */
#ifndef FS_STORE_RECLAIM_H
#define FS_STORE_RECLAIM_H

#include "fs/store/stock.h"

int reclaim_round(struct stock *k);
/* Make room now: drop segments without live values; else move the live values of the segment with the most dead bytes,
 * however few these are. */
void reclaim_one(struct stock *k);
bool reclaim_wants_merge(const struct stock *k);

#endif
