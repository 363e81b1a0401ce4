/* Reads of a tier whose storage may hang. Some threads of the callers may wait for the storage; other reads are queued
 * for the disk's own threads. After one second, a read is taken away from its thread and gets its bytes from elsewhere.
 * The tier is bypassed until the storage answers again. */
#ifndef FS_STORE_DISK_H
#define FS_STORE_DISK_H

#include "fs/store/read.h"

struct disk;

/* `callers`: how many threads of callers may wait concurrently. */
int disk_create(struct store *store, int callers, struct disk **disk);
void disk_stop(struct disk *disk); /* ends all reads with -ESHUTDOWN, and rejects later ones */
void disk_join(struct disk *disk); /* stops, and waits for the threads, which call the loader; NULL is allowed */
void disk_destroy(struct disk *disk);

/* 0: answered. -EINPROGRESS: the read belongs to the disk until store_got is called by one of its threads, maybe before
 * this returns. -ENOENT: the tiers no longer have it. -EBUSY: the tier is bypassed. -ESHUTDOWN. `may_wait`: the calling
 * thread may wait for the storage. */
int disk_get(struct disk *disk, struct store_read *read, bool may_wait);
bool disk_cancel(struct disk *disk, struct store_read *read); /* like store_cancel */

#endif
