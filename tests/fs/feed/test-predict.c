/* Epochs are found by what is read of them, whatever the workers make of the order; what is none is not taken for one.
 * The orders are torch's: tests/fs/plan/test-order.c holds order_seeded to them. */
#include "fs/feed/predict.h"

#include "fs/plan/order.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t reads[1 << 16];

/* What a node reads of an epoch from step `from` on: its ranks' lists of DistributedSampler, in batches, each rank with
 * so many workers that read a batch each, beside each other. How many reads. */
static uint32_t load(const struct predict_terms *t, uint64_t epoch, uint32_t first, uint32_t ranks, uint32_t workers,
                     uint32_t from, unsigned chance)
{
    uint32_t *order = malloc(t->samples * sizeof *order), n = 0, each = t->samples / t->ranks;
    uint32_t done[64] = {0}; /* of each worker's batch */
    uint32_t batch[64];
    if (!order || order_seeded(order, t->samples, t->seed + epoch, NULL) != 0)
        exit(1);
    srandom(chance);
    for (uint32_t w = 0; w < ranks * workers; w++)
        batch[w] = from + w % workers;
    while (n < 400) {
        uint32_t w = (uint32_t)random() % (ranks * workers), rank = first + w / workers;
        uint32_t at = batch[w] * t->batch + done[w];
        if (at >= each)
            break;
        reads[n++] = order[(uint64_t)at * t->ranks + rank];
        if (++done[w] == t->batch) {
            done[w] = 0;
            batch[w] += workers;
        }
    }
    free(order);
    return n;
}

static struct predict_hint hint; /* of the last search */

static enum predict_result find(const struct predict_terms *t, uint32_t n, uint64_t likely, uint64_t *epoch)
{
    enum predict_result result = PREDICT_READING;
    struct predict *p;
    if (predict_create(t, &p) != 0)
        exit(1);
    predict_restart(p, likely);
    for (uint32_t i = 0; i < n && !predict_read(p, reads[i]); i++)
        ;
    while ((result = predict_step(p, 100000, epoch)) == PREDICT_SEARCHING)
        ;
    hint = predict_hint(p);
    predict_destroy(p);
    return result;
}

static void test_found(void)
{
    static const struct {
        struct predict_terms terms;
        uint64_t epoch;
        uint32_t first, ranks, workers, from;
    } table[] = {
        {{50000, 4, 32, 0}, 0, 0, 4, 1, 0},
        {{50000, 4, 32, 0}, 17, 0, 4, 1, 0},
        {{50000, 4, 32, 0}, 17, 2, 2, 8, 0},
        {{50000, 8, 256, 42}, 90, 0, 1, 4, 0},
        {{1281167, 8, 32, 1234}, 3, 0, 8, 2, 0},
        {{1281167, 256, 64, 0}, 89, 12, 4, 8, 0},
        {{50000, 1, 1, 0}, 5, 0, 1, 1, 0},
        {{50000, 2, 1, 0}, 5, 0, 2, 4, 0},
        {{400, 2, 8, 0}, 7, 0, 2, 2, 0},
        {{200, 1, 16, 9}, 2, 0, 1, 1, 0},
        {{48, 1, 8, 0}, 11, 0, 1, 1, 0},
        {{50000, 4, 32, 0}, 9999, 0, 4, 2, 0},
        {{50000, 4, 32, UINT64_MAX}, 2, 0, 4, 2, 0},
        {{50000, 4, 32, 0}, 17, 0, 4, 2, 100},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct predict_terms *t = &table[i].terms;
        unsigned right = 0;
        for (unsigned chance = 1; chance <= 2; chance++) {
            uint64_t epoch = 0;
            uint32_t n =
                load(t, table[i].epoch, table[i].first, table[i].ranks, table[i].workers, table[i].from, chance);
            right += find(t, n, 0, &epoch) == PREDICT_FOUND && epoch == table[i].epoch && hint.batch == 0;
        }
        is_int(right, 2, "%u samples, %u of %u ranks, batch %u, epoch %u, %u workers, from step %u", t->samples,
               table[i].ranks, t->ranks, t->batch, (unsigned)table[i].epoch, table[i].workers, table[i].from);
    }
}

/* Ranks, or a batch, that are not those of the training: what the reads match is named; of chance nothing is. */
static void test_hints(void)
{
    static const struct {
        struct predict_terms terms;
        uint32_t ranks, batch; /* as mounted */
        uint32_t here;         /* ranks on this node */
        uint32_t expected_ranks, expected_batch;
    } table[] = {
        {{50000, 4, 32, 0}, 5, 32, 1, 4, 0}, {{50000, 8, 32, 7}, 4, 32, 1, 8, 0}, {{50000, 16, 64, 0}, 2, 8, 2, 16, 0},
        {{2000, 4, 8, 3}, 3, 8, 2, 4, 0},    {{50000, 2, 8, 0}, 3, 8, 1, 2, 0},   {{2000, 8, 2, 0}, 6, 2, 1, 8, 0},
        {{50000, 2, 8, 0}, 2, 48, 1, 0, 8},  {{50000, 4, 12, 0}, 4, 8, 2, 0, 12},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct predict_terms given = table[i].terms;
        unsigned right = 0, named = 0;
        for (unsigned chance = 1; chance <= 4; chance++) {
            uint64_t epoch = 0;
            uint32_t n = load(&table[i].terms, 3, 0, table[i].here, 4, 0, chance);
            given.ranks = table[i].ranks;
            given.batch = table[i].batch;
            bool found = find(&given, n, 0, &epoch) == PREDICT_FOUND;
            right += found == (table[i].expected_ranks == 0) && hint.ranks == table[i].expected_ranks &&
                     (hint.batch == 0 || hint.batch == table[i].expected_batch);
            named += hint.ranks + hint.batch > 0;
        }
        ok(named > 1, "named in %u of 4 runs", named);
        is_int(right, 4, "%u ranks with batches of %u, mounted with ranks=%u and batch=%u", table[i].terms.ranks,
               table[i].terms.batch, table[i].ranks, table[i].batch);
    }
}

static void test_none(void)
{
    struct predict_terms terms = {50000, 4, 32, 0}, other = {50000, 4, 32, 20000}, ranks = {50000, 5, 32, 0};
    uint64_t epoch;
    ok(find(&terms, load(&other, 0, 0, 4, 2, 0, 1), 0, &epoch) == PREDICT_NONE, "another seed is no epoch of this one");
    ok(find(&terms, load(&ranks, 0, 1, 2, 2, 0, 1), 0, &epoch) == PREDICT_NONE, "nor is another number of ranks");
    unsigned wrong = 0;
    struct predict_terms small = {150, 1, 4, 0};
    for (unsigned chance = 1; chance <= 20; chance++) {
        other = (struct predict_terms){150, 1, 4, 1000000 + chance};
        wrong += find(&small, load(&other, 0, 0, 1, 2, 0, chance), 0, &epoch) != PREDICT_NONE || hint.ranks != 0;
    }
    is_int(wrong, 0, "small lists are not taken for each other");
    for (uint32_t i = 0; i < 400; i++)
        reads[i] = (uint32_t)random() % 50000;
    ok(find(&terms, 400, 0, &epoch) == PREDICT_NONE, "chance");
    ok(find(&terms, 30, 0, &epoch) == PREDICT_READING, "too few reads");
}

static void test_validation(void)
{
    struct predict_terms terms = {50000, 4, 32, 0};
    uint64_t epoch;
    for (uint32_t i = 0; i < 400; i++)
        reads[i] = i;
    ok(find(&terms, 400, 0, &epoch) == PREDICT_NATURAL, "validation by one");
    for (uint32_t i = 0; i < 400; i++)
        reads[i] = i * 4 + 1;
    ok(find(&terms, 400, 0, &epoch) == PREDICT_NATURAL, "by each rank a part");
    for (uint32_t i = 0; i < 400; i++)
        reads[i] = i % 4 * 32 + i / 4 % 32 + i / 128 * 128;
    ok(find(&terms, 400, 0, &epoch) == PREDICT_NATURAL, "by four workers");
    for (uint32_t i = 0; i < 400; i++)
        reads[i] = (uint32_t)random() % 50000;
    ok(!predict_is_natural(reads, 64, 4), "chance is not");
    uint32_t n = load(&terms, 3, 0, 4, 8, 0, 1);
    ok(n >= 64 && !predict_is_natural(reads, 64, 4), "nor is an epoch");
}

static void test_restart(void)
{
    struct predict_terms terms = {50000, 4, 32, 0};
    struct predict *p;
    uint64_t epoch = 0;
    is_int(predict_create(&(struct predict_terms){8, 1, 1, 0}, &p), -EINVAL, "too few samples");
    is_int(predict_create(&(struct predict_terms){100, 0, 1, 0}, &p), -EINVAL, "no ranks");
    if (predict_create(&terms, &p) != 0)
        return;
    bool all = true;
    for (uint64_t e = 5; e < 9; e++) {
        uint32_t n = load(&terms, e, 0, 4, 2, 0, (unsigned)e);
        predict_restart(p, e);
        for (uint32_t i = 0; i < n && !predict_read(p, reads[i]); i++)
            predict_read(p, reads[i]); /* repeats do not count */
        all &= predict_step(p, 1, &epoch) == PREDICT_FOUND && epoch == e;
    }
    ok(all, "the likely epoch is tried first, and the next search begins again");
    predict_restart(p, 0);
    ok(predict_step(p, 1, &epoch) == PREDICT_READING && !predict_read(p, UINT32_MAX),
       "what is no sample does not count");
    predict_destroy(p);
}

int main(void)
{
    test_found();
    test_hints();
    test_none();
    test_validation();
    test_restart();
    return done_testing();
}
