/* Reclaim: when a quarter of a segment is dead, its live values move to a new segment and its file is dropped. So do
 * those of small segments, when there are many: each costs a file, and comes of a moment in which nothing else was
 * read. By the tier's thread. */
#ifndef FS_STORE_RECLAIM_H
#define FS_STORE_RECLAIM_H

#include "fs/store/stock.h"

int reclaim_round(struct stock *k);
/* Where room is wanted: what is dead as a whole goes, else the live values of the one segment with the most dead bytes
 * move, however few they are. */
void reclaim_one(struct stock *k);
bool reclaim_wants_merge(const struct stock *k);

#endif
