/* Recognises from the reads alone which epoch of torch's DistributedSampler is being read. Pure.
 *
 * The order of an epoch is drawn from seed + epoch. A loader reads it in batches, with several workers concurrently;
 * within a batch, samples are in order. So in the right epoch, nearly every read comes soon after the sample before it
 * in its rank's list; in a wrong epoch hardly any does. If an epoch has just begun, its first reads are among the first
 * samples of its order. These can be drawn without the others, which makes it cheap to try many epochs. For an epoch
 * that is joined in the middle, a few epochs are drawn completely.
 *
 * Reads in natural order, as for validation, belong to no epoch. */
#ifndef FS_FEED_PREDICT_H
#define FS_FEED_PREDICT_H

#include <stdbool.h>
#include <stdint.h>

enum {
    PREDICT_READS = 192,    /* number of reads for a search; fewer for short lists */
    PREDICT_EPOCHS = 10000, /* epochs whose beginning is tried; fewer if that needs many draws */
    PREDICT_WHOLE = 64,     /* epochs that are tried completely; likewise */
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
/* Forget the reads and the search. `likely`: the epoch to try first. */
void predict_restart(struct predict *predict, uint64_t likely);
/* A sample was read. True: there are enough reads; further ones are ignored. */
bool predict_read(struct predict *predict, uint32_t sample);

enum predict_result {
    PREDICT_READING,   /* too few reads yet */
    PREDICT_SEARCHING, /* call predict_step again */
    PREDICT_FOUND,
    PREDICT_NATURAL, /* samples are read in natural order */
    PREDICT_NONE,    /* no epoch that was tried fits */
};
/* Continue the search; draws about `draws` numbers. */
enum predict_result predict_step(struct predict *predict, uint64_t draws, uint64_t *epoch);

/* What the reads show of the terms after PREDICT_NONE or PREDICT_FOUND. 0: nothing is certain. */
struct predict_hint {
    uint32_t ranks; /* after PREDICT_NONE: an epoch matches with this number of ranks */
    uint32_t batch; /* after PREDICT_FOUND: batches have this length or a divisor of it, so the given length is wrong */
};
struct predict_hint predict_hint(const struct predict *predict);

/* Are these reads in the natural order of the list? */
bool predict_is_natural(const uint32_t *sample, uint32_t count, uint32_t ranks);

#endif
