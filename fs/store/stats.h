/* Counters of the store's reads. */
#ifndef FS_STORE_STATS_H
#define FS_STORE_STATS_H

#include "fs/store/store.h"

struct stats;

/* Continue the counters in `memory`, of STORE_COUNTS bytes. NULL: own memory, from zero. */
int stats_create(void *memory, struct stats **stats);
struct source_counts *stats_source(struct stats *stats); /* counters for the source */
void stats_destroy(struct stats *stats);

void stats_read(struct stats *stats, enum place place, uint32_t bytes, uint64_t nanoseconds);
void stats_error(struct stats *stats, uint32_t file, int error);
void stats_sum(struct stats *stats, struct store_stats *out); /* sets the fields that are counted here */

#endif
