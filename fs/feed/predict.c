/* Tries epochs, and counts reads that follow the previous one in the epoch's order. */
#include "fs/feed/predict.h"

#include "fs/plan/random.h"

#include <errno.h>
#include <stdlib.h>

enum {
    WORKERS = 8,            /* number of workers of a rank, each with */
    PREFETCH = 2,           /* this many batches */
    SPREAD = 2,             /* reads in long lists may be displaced by this many positions */
    FOLLOW_TENTHS = 6,      /* tenths of the reads that must follow others */
    DRAWS_MOST = 200000000, /* maximum per part of the search: 1 to 2 seconds */
    RANKS_MOST = 1024,      /* ranks that a hint can name */
    STARTS_LEAST = 4,       /* beginnings of batches that show their length */
};
#define NOWHERE UINT32_MAX

struct predict {
    struct predict_terms terms;
    uint32_t sample[PREDICT_READS], reads, enough;
    uint64_t likely;
    uint64_t tried;    /* number of epochs, in the order of the search */
    uint32_t *order;   /* 0, 1, 2, …, except while an epoch is tried */
    uint32_t *swapped; /* the swap partner of each place, to undo it */
    unsigned char *at; /* number of the read for each sample, from 1; 0: not read */
    uint64_t drawn;    /* in this part of the search */
    bool whole;        /* the second part: whole epochs */
    struct predict_hint hint;
    struct mt19937 random;
};

int predict_create(const struct predict_terms *terms, struct predict **predict)
{
    uint32_t n = terms->samples;
    struct predict *p = n >= PREDICT_SAMPLES_LEAST && terms->ranks > 0 ? calloc(1, sizeof *p) : NULL;
    if (!p)
        return n >= PREDICT_SAMPLES_LEAST && terms->ranks > 0 ? -ENOMEM : -EINVAL;
    p->terms = *terms;
    p->enough = n / 3 < PREDICT_READS ? n / 3 : PREDICT_READS;
    p->order = malloc(n * sizeof *p->order);
    p->swapped = malloc(n * sizeof *p->swapped);
    p->at = calloc(n, 1);
    if (!p->order || !p->swapped || !p->at) {
        predict_destroy(p);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++)
        p->order[i] = i;
    *predict = p;
    return 0;
}

void predict_destroy(struct predict *p)
{
    if (!p)
        return;
    free(p->order);
    free(p->swapped);
    free(p->at);
    free(p);
}

void predict_restart(struct predict *p, uint64_t likely)
{
    for (uint32_t i = 0; i < p->reads; i++)
        p->at[p->sample[i]] = 0;
    p->reads = 0;
    p->tried = 0;
    p->drawn = 0;
    p->whole = false;
    p->hint = (struct predict_hint){0};
    p->likely = likely;
}

bool predict_read(struct predict *p, uint32_t sample)
{
    if (sample < p->terms.samples && p->reads < p->enough && p->at[sample] == 0) {
        p->sample[p->reads++] = sample;
        p->at[sample] = (unsigned char)p->reads;
    }
    return p->reads == p->enough;
}

/* --- do reads follow each other? --- */

/* Allowed displacement. In long lists, reads rarely are neighbours by chance, so small changes of the order are
 * allowed. */
static uint32_t spread_in(uint64_t places, uint32_t reads)
{
    return places > (uint64_t)reads * 2 * SPREAD * 20 ? SPREAD : 0;
}

/* Number of reads that follow an earlier one at a distance of `stride`, or a few times that. */
static uint32_t count_followers(const uint32_t *place, uint32_t n, uint32_t stride, uint32_t spread)
{
    uint32_t followers = 0;
    for (uint32_t i = 1; i < n; i++) {
        bool follows = false;
        for (uint32_t j = 0; j < i && !follows && place[i] != NOWHERE; j++) {
            if (place[j] == NOWHERE || place[i] % stride != place[j] % stride)
                continue;
            int64_t steps = ((int64_t)place[i] - (int64_t)place[j]) / (int64_t)stride;
            follows = steps == 1 || (steps != 0 && steps >= -(int64_t)spread && steps <= (int64_t)spread);
        }
        followers += follows;
    }
    return followers;
}

static bool is_followed(uint32_t followers, uint32_t n)
{
    return n > 1 && followers * 10 >= (n - 1) * FOLLOW_TENTHS;
}

/* DistributedSampler without shuffling gives rank, rank + R, …; a plain loader gives all. */
bool predict_is_natural(const uint32_t *sample, uint32_t n, uint32_t ranks)
{
    return is_followed(count_followers(sample, n, 1, 0), n) ||
           (ranks > 1 && is_followed(count_followers(sample, n, ranks, 0), n));
}

/* --- epochs --- */

/* Draw the first `count` places of an epoch's order, like torch.randperm, and find the reads in it. */
static void draw_epoch(struct predict *p, uint64_t epoch, uint32_t count, uint32_t *place)
{
    uint32_t n = p->terms.samples;
    mt_seed(&p->random, p->terms.seed + epoch);
    for (uint32_t i = 0; i < p->reads; i++)
        place[i] = NOWHERE;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t other = i + 1 < n ? i + mt_next(&p->random) % (n - i) : i, sample = p->order[other];
        p->order[other] = p->order[i];
        p->order[i] = sample;
        p->swapped[i] = other;
        if (p->at[sample])
            place[p->at[sample] - 1] = i;
    }
    for (uint32_t i = count; i-- > 0;) {
        uint32_t other = p->swapped[i], sample = p->order[other];
        p->order[other] = p->order[i];
        p->order[i] = sample;
    }
}

/* A node has consecutive ranks. Can the reads be of such ones, and not of all `ranks`? */
static bool are_of_some(const uint32_t *place, uint32_t n, uint32_t ranks)
{
    bool here[RANKS_MOST] = {false};
    uint32_t ends = 0;
    for (uint32_t i = 0; i < n; i++)
        if (place[i] != NOWHERE)
            here[place[i] % ranks] = true;
    for (uint32_t r = 0; r < ranks; r++)
        ends += here[r] && !here[(r + 1) % ranks];
    return ends == 1;
}

/* The number of ranks with which nearly each read follows another one in its rank's list: the smallest of the common
 * differences of two reads. 0: none is certain, as where all ranks are here. */
static uint32_t find_ranks(const uint32_t *place, uint32_t n)
{
    uint32_t count[RANKS_MOST + 1] = {0}, most = 0, ranks = 1;
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t j = 0; j < i && place[i] != NOWHERE; j++)
            if (place[j] < place[i] && place[i] - place[j] <= RANKS_MOST)
                count[place[i] - place[j]]++;
    for (uint32_t d = 1; d <= RANKS_MOST; d++)
        most = count[d] > most ? count[d] : most;
    while (count[ranks] * 10 < most * 7)
        ranks++;
    return is_followed(count_followers(place, n, ranks, 0), n) && are_of_some(place, n, ranks) ? ranks : 0;
}

/* As the terms say; else the hint names another number of ranks, if one is certain. `search`: look for one. */
static bool ranks_fit(struct predict *p, const uint32_t *place, bool search)
{
    uint32_t n = p->reads, ranks = p->terms.ranks, spread = spread_in(p->terms.samples / ranks, n);
    bool fits = is_followed(count_followers(place, n, ranks, spread), n);
    if (!search || ranks > RANKS_MOST)
        return fits;
    if (fits && is_followed(count_followers(place, n, ranks, 0), n) && are_of_some(place, n, ranks))
        return true;
    uint32_t other = find_ranks(place, n);
    if (other == 0 || other == ranks)
        return fits;
    p->hint.ranks = other;
    return false;
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}

/* A worker reads a batch in its order. So a read whose predecessor in the rank's list was not read before begins a
 * batch: its place in the list is a multiple of the batch's length. Returns the greatest common divisor of these places
 * if `batch` cannot be the length; 0: it can, or other reads are among them. */
static uint32_t find_batch(const uint32_t *place, uint32_t n, uint32_t ranks, uint32_t batch)
{
    uint32_t divisor = 0, starts = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool follows = place[i] == NOWHERE || place[i] < ranks;
        for (uint32_t j = 0; j < i && !follows; j++)
            follows = place[j] == place[i] - ranks;
        if (follows)
            continue;
        starts++;
        divisor = common_divisor(divisor, place[i] / ranks);
    }
    return starts >= STARTS_LEAST && divisor > 1 && divisor % batch != 0 ? divisor : 0;
}

static bool epoch_fits(struct predict *p, uint64_t epoch, uint32_t count)
{
    uint32_t place[PREDICT_READS];
    draw_epoch(p, epoch, count, place);
    uint32_t there = 0;
    for (uint32_t i = 0; i < p->reads; i++)
        there += place[i] != NOWHERE;
    if (!is_followed(there, p->reads))
        return false;
    if (!ranks_fit(p, place, count < p->terms.samples || p->tried <= PREDICT_WHOLE))
        return false;
    p->hint = (struct predict_hint){.batch = find_batch(place, p->reads, p->terms.ranks, p->terms.batch)};
    return true;
}

struct predict_hint predict_hint(const struct predict *p)
{
    return p->hint;
}

/* Number of samples that contain the first reads of an epoch. */
static uint32_t first_places(const struct predict *p)
{
    uint64_t batches = WORKERS * PREFETCH + p->enough / p->terms.batch + 1;
    uint64_t places = batches * p->terms.batch * p->terms.ranks;
    return places < p->terms.samples ? (uint32_t)places : p->terms.samples;
}

/* First the beginnings of epochs, the likely one first; then whole epochs. False: none is left. */
static bool next_try(struct predict *p, uint64_t *epoch, uint32_t *count)
{
    uint32_t few = first_places(p), all = p->terms.samples;
    if (!p->whole && (p->tried > PREDICT_EPOCHS || p->drawn > DRAWS_MOST)) {
        p->whole = true;
        p->tried = p->drawn = 0;
    }
    if (p->whole && (few == all || p->tried > PREDICT_WHOLE || p->drawn > DRAWS_MOST))
        return false;
    *count = p->whole ? all : few;
    *epoch = p->tried == 0 ? p->likely : p->tried - 1;
    p->tried++;
    p->drawn += *count + MT_WORDS;
    return true;
}

enum predict_result predict_step(struct predict *p, uint64_t draws, uint64_t *epoch)
{
    uint32_t count = 0;
    if (p->reads < p->enough)
        return PREDICT_READING;
    if (p->tried == 0 && !p->whole && predict_is_natural(p->sample, p->reads, p->terms.ranks))
        return PREDICT_NATURAL;
    for (uint64_t drawn = 0; drawn < draws; drawn += count + MT_WORDS) {
        if (!next_try(p, epoch, &count))
            return PREDICT_NONE;
        if (epoch_fits(p, *epoch, count))
            return PREDICT_FOUND;
    }
    return PREDICT_SEARCHING;
}
