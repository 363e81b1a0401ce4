/* Threads: each counts in its own cell, so that counting causes no traffic between cores. (Many threads share cells.) A
 * sum is computed on demand; it is exact while nobody reads. */
#include "fs/store/stats.h"

#include "fs/base/clock.h"
#include "fs/base/thread.h"
#include "fs/store/source.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { CELLS = 32 };

typedef _Atomic uint64_t counter;

struct cell {
    _Alignas(CACHE_LINE) counter reads[PLACES];
    counter bytes[PLACES], latency_sum[PLACES];
    counter latency[PLACES][STORE_BUCKETS];
    /* The slowest READ of the last SLOWEST_S seconds: microseconds << 32, file; and when it was answered. */
    counter slowest[PLACES], slowest_at[PLACES];
};

struct stats {
    struct cell cell[CELLS];
    counter errors[STORE_ERRNOS], first_failed[STORE_ERRNOS], failed_at[STORE_ERRNOS]; /* see store_stats */
    struct source_counts source;
    bool own; /* not the caller's memory */
};
_Static_assert(sizeof(struct stats) <= STORE_COUNTS, "counts need more room");

static void counter_add(counter *c, uint64_t n)
{
    atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static uint64_t counter_get(counter *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

static struct cell *own_cell(struct stats *stats)
{
    return &stats->cell[thread_number() % CELLS];
}

int stats_create(void *memory, struct stats **stats)
{
    *stats = memory;
    if (memory)
        return 0;
    *stats = aligned_alloc(CACHE_LINE, sizeof **stats);
    if (!*stats)
        return -ENOMEM;
    **stats = (struct stats){.own = true};
    return 0;
}

void stats_destroy(struct stats *stats)
{
    if (stats && stats->own)
        free(stats);
}

struct source_counts *stats_source(struct stats *stats)
{
    return &stats->source;
}

/* The i with 2^(i-1) <= microseconds < 2^i. */
static int bucket_of(uint64_t nanoseconds)
{
    uint64_t us = nanoseconds / 1000;
    int bits = us ? 64 - __builtin_clzll(us) : 0;
    return bits < STORE_BUCKETS ? bits : STORE_BUCKETS - 1;
}

static bool is_recent(uint64_t at, uint64_t now)
{
    return at != 0 && now < at + SLOWEST_S * SECOND;
}

/* Threads that share a cell may mix up two READs, or lose one: that changes a name in a line for people only. */
static void note_slowest(struct cell *cell, enum place place, uint32_t file, uint64_t nanoseconds, uint64_t now)
{
    uint64_t us = nanoseconds / 1000 < UINT32_MAX ? nanoseconds / 1000 : UINT32_MAX;
    uint64_t slowest = us << 32 | file;
    if (counter_get(&cell->slowest[place]) >= slowest && is_recent(counter_get(&cell->slowest_at[place]), now))
        return;
    atomic_store_explicit(&cell->slowest[place], slowest, memory_order_relaxed);
    atomic_store_explicit(&cell->slowest_at[place], now, memory_order_relaxed);
}

void stats_read(struct stats *stats, enum place place, const struct span *span, uint64_t began)
{
    struct cell *cell = own_cell(stats);
    uint64_t now = clock_now(), nanoseconds = now - began;
    counter_add(&cell->reads[place], 1);
    counter_add(&cell->bytes[place], span->length);
    counter_add(&cell->latency_sum[place], nanoseconds);
    counter_add(&cell->latency[place][bucket_of(nanoseconds)], 1);
    note_slowest(cell, place, span->file, nanoseconds, now);
}

void stats_error(struct stats *stats, uint32_t file, int error)
{
    unsigned number = error < 0 && -error < STORE_ERRNOS ? (unsigned)-error : EIO;
    uint64_t none = 0;
    counter_add(&stats->errors[number], 1);
    atomic_compare_exchange_strong(&stats->first_failed[number], &none, (uint64_t)file + 1);
    atomic_store(&stats->failed_at[number], clock_realtime());
}

static void add_slowest(struct cell *cell, enum place place, uint64_t now, struct slowest_read *out)
{
    uint64_t slowest = counter_get(&cell->slowest[place]), at = counter_get(&cell->slowest_at[place]);
    if (is_recent(at, now) && (out->answered == 0 || slowest >> 32 > out->us))
        *out = (struct slowest_read){.answered = at, .us = slowest >> 32, .file = (uint32_t)slowest, .place = place};
}

/* Most cells and places are zero and skipped. */
static void add_cell(struct cell *cell, uint64_t now, struct store_stats *out)
{
    for (int p = 0; p < PLACES; p++) {
        uint64_t reads = counter_get(&cell->reads[p]);
        if (reads == 0)
            continue;
        out->reads[p] += reads;
        out->bytes[p] += counter_get(&cell->bytes[p]);
        out->latency_sum[p] += counter_get(&cell->latency_sum[p]);
        for (int i = 0; i < STORE_BUCKETS; i++)
            out->latency[p][i] += counter_get(&cell->latency[p][i]);
        add_slowest(cell, p, now, &out->slowest);
    }
}

void stats_sum(struct stats *stats, struct store_stats *out)
{
    for (int p = 0; p < PLACES; p++) {
        out->reads[p] = out->bytes[p] = out->latency_sum[p] = 0;
        for (int i = 0; i < STORE_BUCKETS; i++)
            out->latency[p][i] = 0;
    }
    out->slowest = (struct slowest_read){0};
    uint64_t now = clock_now();
    for (int i = 0; i < CELLS; i++)
        add_cell(&stats->cell[i], now, out);
    for (int e = 0; e < STORE_ERRNOS; e++)
        out->errors[e] = counter_get(&stats->errors[e]);
    for (int e = 0; e < STORE_ERRNOS; e++) {
        out->first_failed[e] = counter_get(&stats->first_failed[e]);
        out->failed_at[e] = counter_get(&stats->failed_at[e]);
    }
    out->source_samples = counter_get(&stats->source.samples);
    out->source_bytes = counter_get(&stats->source.bytes);
}
