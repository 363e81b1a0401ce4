/* The shard: two tiers, the map that tells which of them holds a part, and the order in which they fill. */
#include "fs/store/shard.h"

#include "fs/store/tier.h"

#include <errno.h>
#include <stdlib.h>

const char *const tier_names[TIERS] = {"ram", "ssd"};

struct shard {
    struct common common;
    struct tier *tier[TIERS];
};

int shard_open(const struct shard_config *config, struct shard **out)
{
    struct shard *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->common.catalog = config->catalog;
    s->common.parts = config->parts;
    pool_init(&s->common.pool);
    int error = map_init(&s->common.map, config->parts->pieces);
    for (int i = 0; i < TIERS && !error; i++)
        error = tier_create((enum tier_name)i, &config->tier[i], &s->common, &s->tier[i]);
    if (error) {
        shard_close(s);
        return error;
    }
    *out = s;
    return 0;
}

void shard_close(struct shard *s)
{
    if (!s)
        return;
    for (int i = 0; i < TIERS; i++)
        tier_destroy(s->tier[i]);
    map_fini(&s->common.map);
    pool_fini(&s->common.pool);
    free(s);
}

struct layer *shard_layer(struct shard *s, enum tier_name tier)
{
    return &s->tier[tier]->layer;
}

bool shard_holds(const struct shard *s, uint64_t part, enum tier_name *tier)
{
    uint64_t entry = map_get(&s->common.map, part);
    if (entry_held(entry) && tier)
        *tier = entry_tier(entry);
    return entry_held(entry);
}

bool shard_drop(struct shard *s, uint64_t part)
{
    uint64_t entry = map_get(&s->common.map, part);
    while (entry_held(entry)) {
        if (tier_drop_part(s->tier[entry_tier(entry)], part, entry))
            return true;
        entry = map_get(&s->common.map, part);
    }
    return false;
}

/* One run of values in one tier; the next may lie in the other one. */
struct run {
    void (*put)(void *user, uint32_t i, const void *bytes, uint32_t length);
    void *user;
    uint32_t first;
};

static void put_in_run(void *user, uint32_t i, const void *bytes, uint32_t length)
{
    const struct run *run = user;
    run->put(run->user, run->first + i, bytes, length);
}

int shard_stored(struct shard *s, uint32_t file, uint32_t value, uint32_t count,
                 void (*put)(void *user, uint32_t i, const void *bytes, uint32_t length), void *user)
{
    struct run run = {put, user, 0};
    while (run.first < count) {
        uint32_t next = value + run.first;
        uint64_t part = cut_at(s->common.parts, file, (uint64_t)next * VALUE_BYTES);
        enum tier_name tier;
        if (!shard_holds(s, part, &tier))
            return -ENOENT;
        int n = tier_stored(s->tier[tier], file, next, count - run.first, put_in_run, &run);
        if (n < 0)
            return n;
        run.first += (uint32_t)n;
    }
    return 0;
}

/* The run must be whole parts, or a part could be held in half. */
static bool is_whole(const struct common *c, uint32_t file, uint64_t offset, uint32_t length)
{
    uint64_t from, to, size = catalog_file(c->catalog, file).size;
    if (!length || length > PIECE_BYTES || offset >= size || length > size - offset)
        return false;
    cut_bytes(c->parts, file, offset, &from, &to);
    if (from != offset)
        return false;
    cut_bytes(c->parts, file, offset + length - 1, &from, &to);
    return to == offset + length;
}

/* A tier that is still locked may hold what would now be put into the other one. */
static bool any_locked(struct shard *s)
{
    struct tier_status status;
    for (int i = 0; i < TIERS; i++) {
        tier_get_status(s->tier[i], &status);
        if (status.state == TIER_LOCKED)
            return true;
    }
    return false;
}

int shard_reserve(struct shard *s, uint32_t file, uint64_t offset, uint32_t length, struct room *room)
{
    if (!is_whole(&s->common, file, offset, length))
        return -EINVAL;
    if (any_locked(s))
        return -ENOSPC;
    int error = -ENOSPC;
    for (int i = 0; i < TIERS && error; i++)
        error = tier_reserve(s->tier[i], file, offset, length, room);
    return error;
}

static struct tier *tier_of(const struct room *room)
{
    return ((struct segment *)room->segment)->tier;
}

int shard_commit(struct shard *s, struct value_codec_state *codec, struct room *room)
{
    (void)s;
    return tier_commit(tier_of(room), codec, room);
}

void shard_abandon(struct shard *s, struct room *room)
{
    (void)s;
    tier_abandon(tier_of(room), room);
}

int shard_flush(struct shard *s)
{
    int error = 0;
    for (int i = 0; i < TIERS; i++) {
        int failed = tier_flush(s->tier[i]);
        error = error ? error : failed;
    }
    return error;
}

int shard_reclaim(struct shard *s)
{
    int error = 0;
    for (int i = 0; i < TIERS; i++) {
        int failed = tier_reclaim(s->tier[i]);
        error = error ? error : failed;
    }
    return error;
}

void shard_status(struct shard *s, enum tier_name tier, struct tier_status *status)
{
    tier_get_status(s->tier[tier], status);
}

uint64_t shard_overhead(uint64_t capacity)
{
    return tier_overhead(capacity);
}
