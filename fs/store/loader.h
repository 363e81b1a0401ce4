/* The loader fetches bytes that no tier has. Its threads read the source, cache what has room, and answer parked
 * readers. */
#ifndef FS_STORE_LOADER_H
#define FS_STORE_LOADER_H

#include "fs/store/loads.h"

struct loader;

/* `rate`: maximum of bytes per second that it reads from the source; 0: unlimited. */
int loader_create(struct store *store, int threads, int zstd_level, uint64_t rate, struct loader **loader);
/* Ends all parked reads with -ESHUTDOWN, even while the source hangs, and rejects later ones. */
void loader_stop(struct loader *loader);
void loader_destroy(struct loader *loader); /* stops, and waits for reads of the source in progress */

/* -EINPROGRESS: the read belongs to the loader until store_resume or store_end. -EAGAIN: the tiers have all of it now.
 * -ESHUTDOWN, -ENOMEM. */
int loader_park(struct loader *loader, struct store_read *read);
/* The same without caching: only the span is read, from the source if no tier has it. */
int loader_direct(struct loader *loader, struct store_read *read);
/* Give a parked read back to the caller; it is neither resumed nor ended. False: it is not here, or is just ending. */
bool loader_cancel(struct loader *loader, struct store_read *read);

/* For a stage or pull with this number (not 0): load missing bytes of the piece of PIECE_BYTES at `offset`, after loads
 * that readers wait for. Returns how many ends will be reported, by stage_loaded or to the peers; -ESHUTDOWN or
 * -ENOMEM. `held` counts the bytes that a tier already has. Number 0 only counts. */
int loader_wish(struct loader *loader, enum load_wish wish, uint32_t number, uint32_t file, uint64_t offset,
                uint64_t *held);
/* Drop queued loads that only this number wants. Running loads still report their end. */
void loader_forget(struct loader *loader, enum load_wish wish, uint32_t number);
bool loader_pays(const struct loader *loader); /* some workers wait for the rate, not for the source */

#endif
