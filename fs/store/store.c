/* The store: assembly, and the way of a read.
 *
 * Threads: any number read; a read that a tier answers takes no lock here. The others are the loader's, the stage's and
 * the peers' (see there). */
#include "fs/store/store.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/store/loader.h"
#include "fs/store/source.h"
#include "fs/store/split.h"
#include "fs/store/stage.h"
#include "fs/store/stats.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

const char *const place_names[PLACES] = {"ram", "ssd", "peer", "source"};

struct store {
    const struct catalog *catalog;
    struct cut parts;
    struct shard *shard;
    struct layer *layer[PLACES]; /* in the order in which they are asked; NULL: none */
    struct layer *source;        /* the innermost one at PLACE_SOURCE, for its counts */
    struct loader *loader;
    struct stage *stage;
    struct stats *stats;
    struct store_peers peers;  /* constant once anything is read */
    _Atomic uint64_t fetching; /* reads that wait for peers */
};

/* Layers. */

static int add_fault(struct store *s, const char *specification)
{
    enum place place = PLACE_SOURCE;
    if (!strncmp(specification, "on=", 3)) {
        const char *name = specification + 3;
        size_t n = strcspn(name, ",");
        for (place = 0; place < PLACES; place++)
            if (strlen(place_names[place]) == n && !strncmp(place_names[place], name, n))
                break;
        specification = name + n;
    }
    if (place == PLACES || !s->layer[place]) {
        log_error("faults: on=: no such layer");
        return -EINVAL;
    }
    return fault_create(s->catalog, specification, s->layer[place], &s->layer[place]);
}

static int add_faults(struct store *s, const char *specifications)
{
    CLEANUP_FREE char *text = strdup(specifications);
    if (!text)
        return -ENOMEM;
    char *rest;
    for (char *one = strtok_r(text, ";", &rest); one; one = strtok_r(NULL, ";", &rest)) {
        int error = add_fault(s, one);
        if (error)
            return error;
    }
    return 0;
}

/* The layers, in the order in which they are asked. The tiers wait for nothing but their own storage and are asked by
 * the reader's thread; the source is asked by the loader. The peers between them are no layer, since they answer when they
 * will and no thread waits for them: see bring(). */
static int assemble(struct store *s, const struct store_config *config)
{
    s->layer[PLACE_RAM] = shard_layer(s->shard, TIER_RAM);
    s->layer[PLACE_SSD] = shard_layer(s->shard, TIER_SSD);
    s->layer[PLACE_PEER] = NULL;
    int error = source_create(config->catalog, config->source, &s->layer[PLACE_SOURCE]);
    if (error)
        return error;
    s->source = s->layer[PLACE_SOURCE];
    return config->faults ? add_faults(s, config->faults) : 0;
}

/* Reading. */

/* From the first tier that has all of the span. Whatever a tier fails with, there is another place to ask. */
static int ask_tiers(struct store *s, const struct span *span, struct answer *answer, enum place *place)
{
    for (*place = 0; *place < PLACE_PEER; (*place)++) {
        struct layer *layer = s->layer[*place];
        struct answer got;
        answer_init(&got);
        if (layer->ops->get(layer, span, &got) == 0)
            return answer_append(answer, &got, span);
        answer_release(&got);
    }
    return -ENOENT;
}

/* Part by part; what was got counts as from the slowest place of them. */
static int ask_by_parts(struct store *s, const struct span *span, struct answer *answer, enum place *place)
{
    struct answer all;
    answer_init(&all);
    uint64_t from, to, end = span->offset + span->length;
    int error = 0;
    *place = 0;
    for (uint64_t at = span->offset; !error && at < end; at = to) {
        cut_bytes(&s->parts, span->file, at, &from, &to);
        if (to > end)
            to = end;
        struct span part = {.file = span->file, .offset = at, .length = (uint32_t)(to - at)};
        enum place slower;
        error = ask_tiers(s, &part, &all, &slower);
        if (slower > *place)
            *place = slower;
    }
    if (!error)
        error = answer_append(answer, &all, span);
    else
        answer_release(&all);
    return error;
}

static int held(void *user, const struct span *span, struct answer *answer, enum place *place)
{
    struct store *s = user;
    int error = ask_tiers(s, span, answer, place);
    if (!error)
        return 0;
    uint64_t from, to;
    cut_bytes(&s->parts, span->file, span->offset, &from, &to);
    if (span->offset + span->length <= to)
        return error;
    return ask_by_parts(s, span, answer, place);
}

static void count(struct store *s, struct store_read *read, int error)
{
    if (read->quiet)
        return;
    if (error)
        stats_error(s->stats, error);
    else
        stats_read(s->stats, read->place, read->span.length, clock_now() - read->began);
}

static bool keeps(struct store *s, uint32_t file, uint64_t offset)
{
    return !s->peers.keeps || s->peers.keeps(s->peers.user, file, offset);
}

static int fetch(struct store *s, struct store_read *read)
{
    atomic_fetch_add_explicit(&s->fetching, 1, memory_order_relaxed);
    int error = s->peers.fetch(s->peers.user, read);
    if (error != -EINPROGRESS)
        atomic_fetch_sub_explicit(&s->fetching, 1, memory_order_relaxed);
    return error;
}

/* What no tier has: loaded and kept, or fetched from whom it belongs to, or read from the source for this once. */
static int bring(struct store *s, struct store_read *read)
{
    if (keeps(s, read->span.file, read->span.offset))
        return loader_park(s->loader, read);
    if (!read->here && fetch(s, read) == -EINPROGRESS)
        return -EINPROGRESS;
    return loader_direct(s->loader, read);
}

static int all_held(struct store *s, const struct span *span)
{
    uint64_t from, to;
    for (uint64_t at = span->offset; at < span->offset + span->length; at = to) {
        if (!store_holds(s, span->file, at))
            return -ENOENT;
        cut_bytes(&s->parts, span->file, at, &from, &to);
    }
    return 0;
}

/* A read that was parked came from the source, though a tier has its bytes by now. */
static int try(void *user, struct store_read *read)
{
    struct store *s = user;
    int error;
    do {
        error = read->here ? all_held(s, &read->span) : held(s, &read->span, &read->answer, &read->place);
        if (!error && read->lacked)
            read->place = PLACE_SOURCE;
        if (error)
            error = bring(s, read);
    } while (error == -EAGAIN);
    return error;
}

static void answered(void *user, struct store_read *read, int error)
{
    count(user, read, error);
    read->done(read, error);
}

static void resume(void *user, struct store_read *read)
{
    int error = try(user, read);
    if (error != -EINPROGRESS)
        answered(user, read, error);
}

void store_fetched(struct store *s, struct store_read *read, int error)
{
    atomic_fetch_sub_explicit(&s->fetching, 1, memory_order_relaxed);
    if (error)
        error = loader_direct(s->loader, read);
    else
        read->place = PLACE_PEER;
    if (error != -EINPROGRESS)
        answered(s, read, error);
}

static bool within_file(struct store *s, const struct span *span, uint32_t most)
{
    if (span->file >= catalog_files(s->catalog) || span->length == 0 || span->length > most)
        return false;
    uint64_t size = catalog_file(s->catalog, span->file).size;
    return span->offset < size && span->length <= size - span->offset;
}

static void begin(struct store_read *read)
{
    answer_init(&read->answer);
    read->lacked = 0;
    read->tries = 0;
    read->began = clock_now();
}

int store_read(struct store *s, struct store_read *read)
{
    int error = -EINVAL;
    begin(read);
    if (within_file(s, &read->span, SPAN_BYTES))
        error = s->peers.keeps && span_crosses(&read->span) ? split_read(read, try, answered, s) : try(s, read);
    if (error != -EINPROGRESS)
        count(s, read, error);
    return error;
}

int store_load(struct store *s, struct store_read *read)
{
    begin(read);
    read->here = read->quiet = true;
    bool right = read->span.offset % VALUE_BYTES == 0 && !span_crosses(&read->span) &&
                 within_file(s, &read->span, ANSWER_VALUES * VALUE_BYTES);
    return right ? try(s, read) : -EINVAL;
}

/* Opening and closing. */

static void staged(void *user, uint32_t stage, uint32_t file, uint32_t length, int error)
{
    struct store *s = user;
    stage_loaded(s->stage, stage, file, length, error);
}

static int open_shard(struct store *s, const struct store_config *config)
{
    struct shard_config shard = {
        .catalog = config->catalog,
        .parts = &s->parts,
        .zstd_level = config->zstd_level,
    };
    memcpy(shard.tier, config->tier, sizeof shard.tier);
    return shard_open(&shard, &s->shard);
}

static int start_loader(struct store *s, const struct store_config *config)
{
    return loader_create(
        &(struct loader_config){
            .catalog = s->catalog,
            .parts = &s->parts,
            .shard = s->shard,
            .source = s->layer[PLACE_SOURCE],
            .threads = config->source_threads,
            .zstd_level = config->zstd_level,
            .user = s,
            .held = held,
            .resume = resume,
            .answered = answered,
            .staged = staged,
        },
        &s->loader);
}

int store_open(const struct store_config *config, struct store **store)
{
    struct store *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->catalog = config->catalog;
    int error = parts_init(&s->parts, s->catalog);
    if (!error)
        error = stats_create(&s->stats);
    if (!error)
        error = open_shard(s, config);
    if (!error)
        error = assemble(s, config);
    if (!error)
        error = stage_create(s->catalog, s->shard, &s->stage);
    if (!error)
        error = start_loader(s, config);
    if (error) {
        store_close(s);
        return error;
    }
    *store = s;
    return 0;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    int saved = errno;
    if (s->loader)
        loader_stop(s->loader);
    stage_join(s->stage);
    loader_destroy(s->loader);
    stage_destroy(s->stage);
    for (int place = PLACES - 1; place >= 0; place--)
        layer_destroy(s->layer[place]);
    shard_close(s->shard);
    cut_fini(&s->parts);
    stats_destroy(s->stats);
    free(s);
    errno = saved;
}

/* Peers. */

void store_set_peers(struct store *s, const struct store_peers *peers)
{
    s->peers = *peers;
    stage_set_share(s->stage, peers->keeps, peers->user);
}

int store_stored(struct store *s, uint32_t file, uint32_t value, uint32_t count, stored_put put, void *user)
{
    return shard_stored(s->shard, file, value, count, put, user);
}

bool store_holds(struct store *s, uint32_t file, uint64_t offset)
{
    return shard_holds(s->shard, cut_at(&s->parts, file, offset), NULL);
}

static uint64_t trim_file(struct store *s, uint32_t file, bool only_count)
{
    uint64_t size = catalog_file(s->catalog, file).size, from, to, bytes = 0;
    for (uint64_t at = 0; at < size; at = to) {
        cut_bytes(&s->parts, file, at, &from, &to);
        if (store_holds(s, file, at) && !keeps(s, file, at) &&
            (only_count || shard_drop(s->shard, cut_at(&s->parts, file, at))))
            bytes += to - from;
    }
    return bytes;
}

void store_reclaim(struct store *s)
{
    int error = shard_reclaim(s->shard);
    if (error)
        log_warning("reclaim what was given up: %s", strerror(-error));
}

uint64_t store_trim(struct store *s, uint32_t first, uint32_t files, bool only_count)
{
    uint64_t bytes = 0;
    uint32_t all = catalog_files(s->catalog), end = first < all && files < all - first ? first + files : all;
    for (uint32_t file = first; file < end; file++)
        bytes += trim_file(s, file, only_count);
    return bytes;
}

/* Staging and looking. */

int store_stage_start(struct store *s, uint64_t round)
{
    return stage_start(s->stage, s->loader, round);
}

int store_stage_again(struct store *s, uint64_t round)
{
    return stage_again(s->stage, s->loader, round);
}

void store_stage_stop(struct store *s)
{
    stage_stop(s->stage);
}

void store_stage_progress(struct store *s, struct stage_progress *progress)
{
    stage_progress(s->stage, progress);
}

int store_where(struct store *s, uint32_t file, enum tier_name *tier)
{
    if (file >= catalog_files(s->catalog) || catalog_file(s->catalog, file).size == 0)
        return -ENOENT;
    return shard_holds(s->shard, cut_first(&s->parts, file), tier) ? 0 : -ENOENT;
}

void store_stats(struct store *s, struct store_stats *stats)
{
    struct source_counts counts;
    source_counts(s->source, &counts);
    stats_sum(s->stats, stats);
    stats->source_samples = counts.samples;
    stats->source_bytes = counts.bytes;
    stats->parked = loader_parked(s->loader) + atomic_load_explicit(&s->fetching, memory_order_relaxed);
    for (enum tier_name tier = 0; tier < TIERS; tier++)
        shard_status(s->shard, tier, &stats->tier[tier]);
}
