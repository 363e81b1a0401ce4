/* What is to be loaded: decides which loads a read needs, reads ahead of sequential reads, and divides the pieces of a
 * stage. The loader's lock guards it. */
#ifndef FS_STORE_WANTS_H
#define FS_STORE_WANTS_H

#include "fs/store/doubts.h"
#include "fs/store/loads.h"

struct wants {
    const struct catalog *catalog;
    const struct shard *shard;
    const struct doubts *doubts;
    struct loads loads;
    struct load_queue urgent; /* readers wait */
    struct load_queue fed;    /* only the feeder waits */
    struct load_queue later;  /* read ahead, and staging */
    struct recent recent;
    int most_ahead; /* nothing is read ahead while `later` has this many */
};

void wants_init(struct wants *w, const struct catalog *catalog, const struct shard *shard, const struct doubts *doubts);
void wants_fini(struct wants *w); /* only when nobody waits and nothing runs */

/* Afterwards every byte of the read is cached or brought by a load, and these loads are urgent, or fed. `first`: the
 * load with the first missing byte; NULL: all is cached. `ahead`: also load what follows in a sequential read. 0 or
 * -ENOMEM. */
int wants_read(struct wants *w, const struct store_read *read, bool ahead, struct load **first);

/* Put it into the best queue of those who wait for it. */
void wants_queue(struct wants *w, struct load *load);

/* For a stage or a pull: the piece of PIECE_BYTES at `offset`. Returns how many loads will report to `number`, or
 * -ENOMEM; `held` counts cached bytes. Number 0 loads nothing. */
int wants_piece(struct wants *w, enum load_wish wish, uint32_t number, uint32_t file, uint64_t offset, uint64_t *held);

/* The read no longer waits for its load; if nobody else wants the load and it has not begun, it is dropped. False: the
 * read waits for no load. */
bool wants_abandon(struct wants *w, struct store_read *read);

/* `number` has lost interest: drop what is only queued for it. */
void wants_forget(struct wants *w, enum load_wish wish, uint32_t number);

#endif
