/* Reads of a tier whose storage may hang. Some of the callers' threads may wait for it at once, the disk's own threads
 * do the rest. A read that has waited for a second is taken from the thread that waits, which finds it gone when it
 * comes back, and is served otherwise; until then the tier is passed by. */
#ifndef FS_STORE_DISK_H
#define FS_STORE_DISK_H

#include "fs/store/store.h"

struct disk;

/* `callers`: how many of their threads may wait at once; the others' reads are queued. */
int disk_create(struct store *store, int callers, struct disk **disk);
void disk_stop(struct disk *disk); /* every read is ended with -ESHUTDOWN, and every later one refused so */
void disk_join(struct disk *disk); /* stops, and waits until it asks the loader for nothing more; NULL: nothing */
void disk_destroy(struct disk *disk);

/* 0: answered. -EINPROGRESS: the read is the disk's until store_got is called, with what would have been returned, from
 * a thread of its own; or it was. -ENOENT: the tiers have it no more. -EBUSY: the tier is passed by. -ESHUTDOWN. With
 * `may_wait` the caller's thread may be one of those that wait. */
int disk_get(struct disk *disk, struct store_read *read, bool may_wait);
bool disk_cancel(struct disk *disk, struct store_read *read); /* as store_cancel */

#endif
