/* Assembles the store: the shard of the tiers, the source, and what fetches bytes that no tier has. store-read.c has
 * the way of a read. */
#include "fs/store/store.h"
#include "fs/store/store-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"
#include "fs/store/disk.h"
#include "fs/store/loader.h"
#include "fs/store/proof.h"
#include "fs/store/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *const place_names[PLACES] = {"ram", "ssd", "peer", "source"};

/* --- the layers --- */

/* The layer that is asked for the bytes of a place. NULL for peers: they are no layer, since their answers come later
 * and no thread waits for them. */
static struct layer **layer_at(struct store *s, enum place place)
{
    switch (place) {
    case PLACE_RAM:
        return shard_layer(s->shard, TIER_RAM);
    case PLACE_SSD:
        return shard_layer(s->shard, TIER_SSD);
    case PLACE_SOURCE:
        return &s->source;
    case PLACE_PEER:
    case PLACES:
        break;
    }
    return NULL;
}

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
    struct layer **layer = layer_at(s, place);
    if (!layer) {
        log_error("faults: on=: no such layer");
        return -EINVAL;
    }
    return fault_create(s->catalog, specification, *layer, layer);
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

/* The cached bytes of a resized file are not those of the source; the layer over it compares them when it makes them
 * again. */
static int draw_value(void *user, uint32_t file, struct span *span, struct answer *answer)
{
    struct store *s = user;
    if (doubts_about(&s->doubts, file) == DOUBT_TOLD || doubts_about(&s->doubts, file) == DOUBT_STALE)
        return -ESTALE;
    if (s->original && catalog_file_seed(s->original, file) != catalog_file_seed(s->catalog, file))
        return -ENOENT;
    return proof_draw(s, file, span, answer);
}

static void drop_file(void *user, uint32_t file)
{
    proof_drop(user, file, false);
}

static int open_layers(struct store *s, const struct store_config *config)
{
    struct shard_config shard = {.catalog = config->catalog};
    memcpy(shard.tier, config->tier, sizeof shard.tier);
    int error = shard_open(&shard, &s->shard);
    if (!error)
        error = source_create(config->original ? config->original : config->catalog, config->source,
                              config->source_reopen, config->source_user, &s->origin);
    if (error)
        return error;
    s->source = s->origin;
    source_set_witness(s->origin, &(struct source_witness){s, draw_value, drop_file});
    source_count_in(s->origin, stats_source(s->stats));
    source_note_modes(s->origin, s->modes);
    if (config->over_source)
        error = config->over_source(config->source_user, s->origin, &s->source);
    if (error)
        return error;
    return config->faults ? add_faults(s, config->faults) : 0;
}

/* --- opening and closing --- */

int store_open(const struct store_config *config, struct store **store)
{
    struct store *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->catalog = config->catalog;
    s->original = config->original;
    s->root = config->source;
    s->served = config->served ? config->served : &s->own_served;
    int error = doubts_init(&s->doubts, config->original ? config->original : config->catalog);
    if (!error)
        error = stats_create(config->counts, &s->stats);
    if (!error && config->admits_others)
        error = modes_create(config->catalog, &s->modes);
    if (!error)
        error = open_layers(s, config);
    if (!error)
        error = stage_create(s, &s->stage);
    if (!error)
        error = loader_create(s, config->source_threads > 0 ? config->source_threads : 1, config->zstd_level,
                              config->source_rate, &s->loader);
    if (!error && config->tier[TIER_SSD].directory)
        error = disk_create(s, config->disk_callers, &s->disk);
    if (error)
        store_close(s);
    else
        *store = s;
    return error;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    KEEP_ERRNO;
    if (s->loader)
        loader_stop(s->loader);
    if (s->source)
        layer_stop(s->source);
    if (s->disk)
        disk_stop(s->disk);
    stage_join(s->stage);
    disk_join(s->disk);
    loader_destroy(s->loader); /* until here it may ask the disk, which rejects it */
    disk_destroy(s->disk);
    stage_destroy(s->stage);
    layer_destroy(s->source);
    shard_close(s->shard);
    mode_round_stop(atomic_load(&s->round)); /* late, because it may hang in the source */
    stats_destroy(s->stats);
    doubts_fini(&s->doubts);
    modes_destroy(s->modes);
    free(s);
}

/* --- modes --- */

int store_watch_modes(struct store *s, const struct store_watch *watch)
{
    if (!s->modes)
        return 0;
    struct mode_round_config config = {s->catalog, s->root, s->modes, watch->nodes, watch->user};
    struct mode_round *round = NULL;
    modes_listen(s->modes, watch->changed, watch->user);
    int error = mode_round_start(&config, &round);
    atomic_store(&s->round, round);
    return error;
}

mode_t store_limit_mode(struct store *s, uint64_t ino, mode_t mode)
{
    return s && s->modes ? modes_limit(s->modes, ino, mode) : mode;
}

bool store_has_reduced(struct store *s)
{
    return s->modes && modes_are_reduced(s->modes);
}

/* --- peers --- */

void store_set_peers(struct store *s, const struct store_peers *peers)
{
    s->peers = *peers;
}

int store_stored(struct store *s, const struct span *span, bool verify, stored_put put, void *user)
{
    return doubts_hide(&s->doubts, span->file) ? -ENOENT : shard_stored(s->shard, span, verify, put, user);
}

struct pool *store_pool(struct store *s)
{
    return shard_pool(s->shard);
}

bool store_holds(struct store *s, uint32_t file, uint64_t offset)
{
    return shard_where(s->shard, file, offset) != TIERS;
}

static uint64_t trim_file(struct store *s, uint32_t file, bool only_count)
{
    uint64_t size = catalog_file(s->catalog, file).size, from, to, bytes = 0;
    for (uint64_t at = 0; at < size; at = to) {
        shard_part(s->shard, file, at, &from, &to);
        if (store_holds(s, file, at) && !store_keeps(s, file, at) && (only_count || shard_drop(s->shard, file, at)))
            bytes += to - from;
    }
    return bytes;
}

uint64_t store_trim(struct store *s, uint32_t first, uint32_t files, bool only_count)
{
    uint64_t bytes = 0;
    uint32_t all = catalog_files(s->catalog), end = first < all && files < all - first ? first + files : all;
    for (uint32_t file = first; file < end; file++)
        bytes += trim_file(s, file, only_count);
    return bytes;
}

/* --- while samples move --- */

int store_pull(struct store *s, uint32_t number, uint32_t file, uint64_t from, uint64_t to, uint64_t *held)
{
    int notices = 0;
    for (uint64_t at = from; at < to; at += PIECE_BYTES) {
        int error = loader_wish(s->loader, LOAD_PULL, number, file, at, held);
        if (error < 0)
            return notices ? notices : error;
        notices += error;
    }
    return notices;
}

void store_forget_pull(struct store *s, uint32_t number)
{
    loader_forget(s->loader, LOAD_PULL, number);
}

bool store_is_stored(struct store *s, uint32_t file, uint64_t from, uint64_t to)
{
    return shard_is_stored(s->shard, file, from, to);
}

uint64_t store_drop(struct store *s, uint32_t file, uint64_t from, uint64_t to)
{
    uint64_t bytes = 0, begin, end;
    for (uint64_t at = from; at < to; at = end) {
        shard_part(s->shard, file, at, &begin, &end);
        bytes += shard_drop(s->shard, file, at) ? end - begin : 0;
    }
    return bytes;
}

uint64_t store_make_room(struct store *s)
{
    return shard_make_room(s->shard);
}

int store_flush(struct store *s)
{
    return shard_flush(s->shard);
}

bool store_is_opening(struct store *s)
{
    return shard_is_locked(s->shard);
}

/* --- the courier --- */

int store_share(struct store *s, struct message_shared *message, int fd[SHARE_FDS])
{
    return shard_share(s->shard, message, fd);
}

int store_share_segment(struct store *s, uint32_t number, struct message_segment *message, int fd[SHARE_FDS])
{
    return shard_share_segment(s->shard, number, message, fd);
}

/* --- views --- */

int store_where(struct store *s, uint32_t file, uint64_t offset, enum tier_name *tier)
{
    if (file >= catalog_files(s->catalog) || catalog_file(s->catalog, file).size <= offset)
        return -ENOENT;
    *tier = shard_where(s->shard, file, offset);
    return *tier != TIERS ? 0 : -ENOENT;
}

_Static_assert((int)PLACES == (int)FEED_PLACES, "places are the same");

static void sum_fed(struct feed_served *served, struct store_stats *stats)
{
    for (enum place place = 0; place < PLACES; place++) {
        stats->fed.reads[place] = atomic_load_explicit(&served->reads[place], memory_order_relaxed);
        stats->fed.bytes[place] = atomic_load_explicit(&served->bytes[place], memory_order_relaxed);
        stats->fed.waits[place] = atomic_load_explicit(&served->waits.waiting[place], memory_order_relaxed);
    }
    stats->fed.errors = atomic_load_explicit(&served->errors, memory_order_relaxed);
}

void store_stats(struct store *s, struct store_stats *stats)
{
    stats_sum(s->stats, stats);
    sum_fed(s->served, stats);
    stats->parked = 0;
    for (enum place place = 0; place < PLACES; place++) {
        int64_t waits = atomic_load_explicit(&s->waiting[place], memory_order_relaxed);
        stats->waits[place] = waits > 0 ? (uint64_t)waits : 0;
        stats->parked += stats->waits[place];
    }
    source_root(s->origin, &stats->root);
    const struct mode_round *round = atomic_load(&s->round);
    stats->round_seconds = round ? mode_round_seconds(round) : 0;
    for (enum tier_name tier = 0; tier < TIERS; tier++)
        shard_status(s->shard, tier, &stats->tier[tier]);
}
