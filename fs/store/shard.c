/* The shard: two tiers, the map of which tier has a part, and the order in which tiers are filled. */
#include "fs/store/shard.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/store/distrust.h"
#include "fs/store/tier-read.h"
#include "fs/store/tier.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

struct shard {
    struct cut parts;
    struct map map;
    struct pool pool;
    struct tier *tier[TIERS];
    struct layer *layer[TIERS]; /* the tier, or a layer in front of it; owned */
};

int shard_open(const struct shard_config *config, struct shard **out)
{
    struct shard *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    pool_init(&s->pool);
    int error = parts_init(&s->parts, config->catalog);
    if (!error)
        error = map_init(&s->map, config->catalog, &s->parts);
    for (enum tier_name i = 0; i < TIERS && !error; i++) {
        error = tier_create(i, &config->tier[i], &s->map, &s->pool, &s->tier[i]);
        if (!error)
            s->layer[i] = &s->tier[i]->layer;
    }
    if (error)
        shard_close(s);
    else
        *out = s;
    return error;
}

void shard_close(struct shard *s)
{
    if (!s)
        return;
    for (int i = 0; i < TIERS; i++)
        layer_destroy(s->layer[i]);
    map_fini(&s->map);
    pool_fini(&s->pool);
    cut_fini(&s->parts);
    free(s);
}

struct pool *shard_pool(struct shard *s)
{
    return &s->pool;
}

struct layer **shard_layer(struct shard *s, enum tier_name tier)
{
    return &s->layer[tier];
}

/* --- parts --- */

void shard_part(const struct shard *s, uint32_t file, uint64_t offset, uint64_t *from, uint64_t *to)
{
    cut_bytes(&s->parts, file, offset, from, to);
}

enum tier_name shard_where(const struct shard *s, uint32_t file, uint64_t offset)
{
    uint64_t entry = map_get(&s->map, cut_at(&s->parts, file, offset));
    return entry_held(entry) ? entry_tier(entry) : TIERS;
}

bool shard_drop(struct shard *s, uint32_t file, uint64_t offset)
{
    uint64_t part = cut_at(&s->parts, file, offset), entry = map_get(&s->map, part);
    while (entry_held(entry)) {
        if (stock_drop_part(&s->tier[entry_tier(entry)]->stock, part, entry))
            return true;
        entry = map_get(&s->map, part);
    }
    return false;
}

void shard_distrust(struct shard *s, uint32_t file, bool now)
{
    const struct catalog *c = s->map.catalog;
    struct distrusted one = {catalog_file_version(c, file), now ? 0 : catalog_scanned(c)};
    struct tier_status status;
    for (int i = 0; i < TIERS; i++) {
        tier_get_status(s->tier[i], &status);
        int error =
            status.state == TIER_OPEN || status.state == TIER_CLOSED ? distrust_add(s->tier[i]->folder.path, &one) : 0;
        if (error)
            log_warning("%s tier: write the list of what the next mount must not use: %s", tier_names[i],
                        strerror(-error));
    }
    uint64_t size = catalog_kept_size(c, file), from, to;
    for (uint64_t at = 0; at < size; at = to) {
        shard_part(s, file, at, &from, &to);
        shard_drop(s, file, at);
    }
}

/* If the part moves meanwhile, look again. */
static bool part_is_stored(const struct shard *s, uint64_t part)
{
    uint64_t entry;
    while (entry_held(entry = map_get(&s->map, part))) {
        struct segment *in = stock_pin(&s->tier[entry_tier(entry)]->stock, entry_segment(entry));
        bool stored = in && in->file;
        if (in)
            stock_unpin(in);
        if (in || map_get(&s->map, part) == entry)
            return stored;
    }
    return false;
}

bool shard_is_stored(const struct shard *s, uint32_t file, uint64_t from, uint64_t to)
{
    bool stored = true;
    for (uint64_t at = from, begin; at < to && stored;) {
        stored = part_is_stored(s, cut_at(&s->parts, file, at));
        cut_bytes(&s->parts, file, at, &begin, &at);
    }
    return stored;
}

/* --- reading --- */

static enum tier_name where_up_to(const struct shard *s, uint32_t file, uint64_t offset, enum tier_name most)
{
    enum tier_name tier = shard_where(s, file, offset);
    return tier <= most ? tier : TIERS;
}

uint64_t shard_run(const struct shard *s, const struct span *span, uint64_t at, enum tier_name most,
                   enum tier_name *tier)
{
    uint64_t from, end = span->offset + span->length;
    *tier = where_up_to(s, span->file, at, most);
    do
        cut_bytes(&s->parts, span->file, at, &from, &at);
    while (at < end && where_up_to(s, span->file, at, most) == *tier);
    return at < end ? at : end;
}

bool shard_holds(const struct shard *s, const struct span *span)
{
    enum tier_name tier = TIER_RAM;
    for (uint64_t at = span->offset; at < span->offset + span->length && tier != TIERS;)
        at = shard_run(s, span, at, TIER_SSD, &tier);
    return tier != TIERS;
}

static int get_run(struct layer *layer, const struct span *run, struct answer *answer)
{
    struct answer got;
    answer_init(&got);
    int error = layer->ops->get(layer, run, &got);
    if (!error)
        return answer_append(answer, &got, run);
    answer_release(&got);
    return error;
}

/* After any error of a tier there is another place to ask. */
int shard_get(struct shard *s, const struct span *span, enum tier_name most, struct answer *answer,
              enum tier_name *slowest)
{
    uint64_t to, end = span->offset + span->length;
    *slowest = TIER_RAM;
    for (uint64_t at = span->offset; at < end; at = to) {
        enum tier_name tier;
        to = shard_run(s, span, at, most, &tier);
        struct span run = {.file = span->file, .length = (uint32_t)(to - at), .offset = at};
        if (tier == TIERS || get_run(s->layer[tier], &run, answer)) {
            answer_release(answer);
            return -ENOENT;
        }
        *slowest = tier > *slowest ? tier : *slowest;
    }
    return 0;
}

/* The values may alternate between the tiers. */
int shard_stored(struct shard *s, const struct span *span, bool verify, stored_put put, void *user)
{
    struct values_out out = {.put = put, .user = user, .verify = verify};
    uint64_t first = span->offset / VALUE_BYTES, end = span->offset + span->length;
    for (uint64_t at = span->offset; at < end; at = (first + out.done) * VALUE_BYTES) {
        struct span rest = {.file = span->file, .length = (uint32_t)(end - at), .offset = at};
        enum tier_name tier = shard_where(s, span->file, at);
        int error = tier == TIERS ? -ENOENT : tier_read_stored(&s->tier[tier]->stock, &rest, &out);
        if (error)
            return error;
    }
    return 0;
}

/* The run must consist of whole parts: a part is never half cached. */
static bool is_whole(const struct shard *s, uint32_t file, uint64_t offset, uint32_t length)
{
    uint64_t from, to, size = catalog_file(s->map.catalog, file).size;
    if (!length || length > PIECE_BYTES || offset >= size || length > size - offset)
        return false;
    cut_bytes(&s->parts, file, offset, &from, &to);
    if (from != offset)
        return false;
    cut_bytes(&s->parts, file, offset + length - 1, &from, &to);
    return to == offset + length;
}

/* A locked tier may have what would now be put into the other one. */
bool shard_is_locked(struct shard *s)
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
    if (!is_whole(s, file, offset, length))
        return -EINVAL;
    if (shard_is_locked(s))
        return -ENOSPC;
    int error = -ENOSPC;
    for (int i = 0; i < TIERS && error; i++)
        error = rooms_reserve(&s->tier[i]->rooms, file, offset, length, room);
    return error;
}

int shard_take(struct room *room, uint32_t i, const void *bytes, uint32_t length)
{
    return rooms_take(room, i, bytes, length);
}

void shard_commit(struct value_codec_state *codec, struct room *room)
{
    rooms_commit(codec, room);
}

void shard_abandon(struct room *room)
{
    rooms_abandon(room);
}

/* --- the courier --- */

int shard_share(const struct shard *s, struct message_shared *m, int fd[SHARE_FDS])
{
    const struct cut *parts = &s->parts;
    *m = (struct message_shared){parts->pieces, parts->files, (uint32_t)parts->count};
    if (s->map.shared < 0)
        return -EOPNOTSUPP;
    CLEANUP_CLOSE int map = fcntl(s->map.shared, F_DUPFD_CLOEXEC, 0);
    int large = map < 0 ? -errno : file_memory("dealfs-large", parts->large, parts->count * sizeof *parts->large);
    if (large < 0)
        return large;
    fd[SHARE_MAP] = steal_fd(map);
    fd[SHARE_LARGE] = large;
    return 0;
}

int shard_share_segment(const struct shard *s, uint32_t number, struct message_segment *m, int fd[SHARE_FDS])
{
    struct segment *in = stock_pin(&s->tier[TIER_RAM]->stock, number);
    if (!in)
        return -ENOENT;
    int error = in->file ? segment_file_share(in->file, m, fd) : -ENOENT;
    stock_unpin(in);
    return error;
}

/* Returns the first error. */
static int ask_both(struct shard *s, int (*ask)(struct tier *tier))
{
    int ram = ask(s->tier[TIER_RAM]), ssd = ask(s->tier[TIER_SSD]);
    return ram ? ram : ssd;
}

int shard_flush(struct shard *s)
{
    return ask_both(s, tier_flush);
}

int shard_reclaim(struct shard *s)
{
    return ask_both(s, tier_reclaim);
}

uint64_t shard_make_room(struct shard *s)
{
    uint64_t bytes = 0;
    for (int i = 0; i < TIERS && !bytes; i++)
        bytes = tier_make_room(s->tier[i]);
    return bytes;
}

void shard_status(struct shard *s, enum tier_name tier, struct tier_status *status)
{
    tier_get_status(s->tier[tier], status);
}

uint64_t shard_room(uint64_t capacity)
{
    /* the next room may not fit into a segment that is more than half full */
    uint64_t segments = capacity ? 2 * (capacity / tier_segment_bytes(capacity) + 1) : 0;
    return capacity > segments * SEGMENT_COST ? capacity - segments * SEGMENT_COST : 0;
}

uint64_t shard_kept_free(uint64_t capacity)
{
    enum { SEGMENTS = 4, PERCENT = 3 };
    uint64_t segments = SEGMENTS * (uint64_t)tier_segment_bytes(capacity), part = capacity / 100 * PERCENT;
    uint64_t most = capacity / 3; /* a small tier moves its samples in more steps, but still owns some */
    uint64_t free = segments > part ? segments : part;
    return free < most ? free : most;
}

uint64_t shard_overhead(uint64_t capacity)
{
    /* stagings, one segment's values twice while they move, and RocksDB's own files */
    size_t bytes = tier_segment_bytes(capacity);
    return (STAGINGS + 1) * bytes + rocks_overhead(bytes ? capacity / bytes + STAGINGS + 1 : 0);
}
