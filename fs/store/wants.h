/* What is to be loaded: decides which loads a read needs, reads ahead of a sequence, and cuts what a stage asks for.
 * A plain data structure: the loader's lock guards it. */
#ifndef FS_STORE_WANTS_H
#define FS_STORE_WANTS_H

#include "fs/store/loads.h"

struct wants {
    const struct catalog *catalog;
    const struct shard *shard;
    struct loads loads;
    struct load_queue urgent; /* readers wait */
    struct load_queue fed;    /* nobody but the feeder waits */
    struct load_queue later;  /* read ahead, and staging */
    struct recent recent;
    int most_ahead; /* nothing is read ahead while this many are in `later` */
};

void wants_init(struct wants *w, const struct catalog *catalog, const struct shard *shard);
void wants_fini(struct wants *w); /* nobody waits any more and nothing runs */

/* Every byte of the read is held or brought by a load afterwards, and what it needs is urgent, or fed. `first` is the
 * load that brings the first byte which is not held; NULL: all of it is held by now. With `ahead`, what follows a
 * sequence of reads is loaded too. 0 or -ENOMEM. */
int wants_read(struct wants *w, const struct store_read *read, bool ahead, struct load **first);

/* Into the queue of the best of those who wait for it. */
void wants_queue(struct wants *w, struct load *load);

/* For a stage or a pull: the piece of PIECE_BYTES of a file that begins at `offset`. Returns how many loads will end
 * with notice to `number`, or -ENOMEM; `held` counts the bytes that are held already. With number 0 nothing is loaded.
 */
int wants_piece(struct wants *w, enum load_wish wish, uint32_t number, uint32_t file, uint64_t offset, uint64_t *held);

/* The read waits no more for what it parked for; a load that nobody wants now is dropped if it does not run. False: it
 * waits for no load. */
bool wants_abandon(struct wants *w, struct store_read *read);

/* It is not interested any more: what is only queued for it is dropped. */
void wants_forget(struct wants *w, enum load_wish wish, uint32_t number);

#endif
