/* Which epoch of torch's DistributedSampler is being read, told by the reads alone. Pure.
 *
 * The order of an epoch is known: it is drawn from seed + epoch. A loader reads batches of it, with several workers
 * beside each other; but in a batch one sample comes after the other. So in the right epoch nearly each read comes soon
 * after the one that stands before it in its rank's list, and in a wrong one hardly any does. Of an epoch that has just
 * begun the first reads are among the first samples of its order, and these are drawn without the others: many epochs
 * are tried for little. For one that is joined in the middle a few are drawn as a whole.
 *
 * What is read in the natural order, as for validation, is no epoch. */
#ifndef FS_FEED_PREDICT_H
#define FS_FEED_PREDICT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    PREDICT_READS = 192,    /* that are looked at, fewer of short lists */
    PREDICT_EPOCHS = 10000, /* that are tried by their beginnings, fewer where much is to be drawn for that */
    PREDICT_WHOLE = 64,     /* that are tried as a whole, likewise */
    PREDICT_SAMPLES_LEAST = 16,
};

struct predict_terms {
    uint32_t samples, ranks, batch;
    uint64_t seed;
};

struct predict;

/* -EINVAL: too few samples, or no ranks; -ENOMEM. */
int predict_create(const struct predict_terms *terms, struct predict **predict);
void predict_destroy(struct predict *predict);
/* Forget the reads, and the search. `likely`: the epoch to try first. */
void predict_restart(struct predict *predict, uint64_t likely);
/* A sample was read. True: there are enough to search. Further ones do not count. */
bool predict_read(struct predict *predict, uint32_t sample);

enum predict_result {
    PREDICT_READING,   /* too few reads yet */
    PREDICT_SEARCHING, /* go on */
    PREDICT_FOUND,
    PREDICT_NATURAL, /* it is read as it lies */
    PREDICT_NONE,    /* it is no epoch that was tried */
};
/* Some of the search: about so many numbers are drawn. */
enum predict_result predict_step(struct predict *predict, uint64_t draws, uint64_t *epoch);

/* Do these reads, in their order, follow the natural order of the list? */
bool predict_is_natural(const uint32_t *sample, uint32_t count, uint32_t ranks);

#endif
