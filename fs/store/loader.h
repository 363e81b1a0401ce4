/* The loader: brings what no tier holds. Threads of its own read the source, keep what has room, and answer the readers
 * that are parked. */
#ifndef FS_STORE_LOADER_H
#define FS_STORE_LOADER_H

#include "fs/store/loads.h"

struct loader;
struct store_config;

int loader_create(struct store *store, const struct store_config *config, struct loader **loader);
/* Reads that are parked are answered -ESHUTDOWN before anything else, even while the source hangs; every later park is
 * refused. */
void loader_stop(struct loader *loader);
void loader_destroy(struct loader *loader); /* stops; waits for what is being read */

/* -EINPROGRESS: the read is the loader's until store_resume or store_end. -EAGAIN: all of it is held by now.
 * -ESHUTDOWN, -ENOMEM. */
int loader_park(struct loader *loader, struct store_read *read);
/* The same for what is not to be kept: just the span is read, from the source where no tier has it. */
int loader_direct(struct loader *loader, struct store_read *read);
/* Give a read that is parked back to the caller, neither resumed nor ended. False: it is not here, or is just
 * ending. */
bool loader_cancel(struct loader *loader, struct store_read *read);

/* For the stage or the pull of this number (not 0): load what is missing of the piece of PIECE_BYTES that begins at
 * `offset`, after what readers wait for. Returns how many times its end will be told, by stage_loaded or to the peers,
 * -ESHUTDOWN or -ENOMEM; `held` counts the bytes that a tier holds already. Number 0 only counts. */
int loader_wish(struct loader *loader, enum load_wish wish, uint32_t number, uint32_t file, uint64_t offset,
                uint64_t *held);
/* Drop what is queued for it only; what runs still ends with that call. */
void loader_forget(struct loader *loader, enum load_wish wish, uint32_t number);
bool loader_pays(const struct loader *loader); /* some of them wait because of the rate, not for the source */

#endif
