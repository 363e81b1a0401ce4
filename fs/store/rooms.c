/* Until a room is returned, its places belong to its filler. Published values may be read by any thread. */
#include "fs/store/rooms.h"

#include "fs/base/clock.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE (5 * SECOND)
#define DISK_PATIENCE (10 * SECOND)
#define IDLE (5 * SECOND)

static size_t align_value(size_t raw, bool in_blocks)
{
    size_t stored = VALUE_HEADER + raw + (in_blocks ? value_sums(raw) : 0);
    return (stored + STAGING_ALIGN - 1) & ~(size_t)(STAGING_ALIGN - 1);
}

void rooms_init(struct tier_rooms *r, struct stock *stock, const char *folder)
{
    *r = (struct tier_rooms){.stock = stock, .folder = folder, .most = STAGINGS};
}

void rooms_fini(struct tier_rooms *r)
{
    for (int i = 0; i < r->made; i++) {
        free(r->staging[i]->segment);
        staging_destroy(r->staging[i]);
    }
}

void rooms_seal(struct tier_rooms *r)
{
    if (!r->open)
        return;
    segment_enter(r->open, SEGMENT_SEALED);
    pthread_cond_signal(&r->stock->work);
    r->open = NULL;
}

uint64_t rooms_look(struct tier_rooms *r)
{
    uint64_t now = clock_now();
    if (r->open && r->open->rooms)
        r->touched = now; /* a filler is slow */
    if (r->stock->state != TIER_OPEN || now >= r->touched + IDLE)
        rooms_seal(r);
    return r->open ? r->touched + IDLE : 0;
}

static struct staging_area *free_staging(const struct tier_rooms *r)
{
    for (int i = 0; i < r->made; i++)
        if (!r->staging[i]->segment)
            return r->staging[i];
    return NULL;
}

/* Releases the lock in between. If it fails and there is a staging already, the tier works with fewer. */
static int make_staging(struct tier_rooms *r)
{
    struct stock *k = r->stock;
    r->making = clock_now();
    pthread_mutex_unlock(&k->lock);
    struct staging_area *made = NULL;
    int error = staging_create(r->folder, k->segment_bytes, &made);
    pthread_mutex_lock(&k->lock);
    r->making = 0;
    if (!error)
        r->staging[r->made++] = made;
    else if (r->made)
        r->most = r->made;
    pthread_cond_broadcast(&k->changed);
    return r->made ? 0 : error;
}

static int begin_segment(struct tier_rooms *r, struct staging_area *staging)
{
    struct stock *k = r->stock;
    if (k->next_segment == UINT32_MAX)
        return -EOVERFLOW;
    struct segment *s = segment_new(&k->segments, k->next_segment, staging, NULL);
    if (!s)
        return -ENOMEM;
    k->next_segment++;
    s->held = SEGMENT_COST;
    k->held += SEGMENT_COST;
    staging->segment = s;
    r->open = s;
    pthread_cond_signal(&k->work); /* the tier's thread checks open segments */
    return 0;
}

static bool may_be_stored(const struct segment *s)
{
    return s->state == SEGMENT_SEALED && s->rooms == 0;
}

struct segment *rooms_next(struct tier_rooms *r)
{
    struct segment *oldest = NULL;
    for (int i = 0; i < r->made; i++) {
        struct segment *s = r->staging[i]->segment;
        if (s && may_be_stored(s) && (!oldest || s->number < oldest->number))
            oldest = s;
    }
    if (oldest)
        segment_enter(oldest, SEGMENT_STORING);
    return oldest;
}

bool rooms_have_sealed(const struct tier_rooms *r, uint32_t before)
{
    for (int i = 0; i < r->made; i++) {
        const struct segment *s = r->staging[i]->segment;
        if (s && s->number < before && (s->state == SEGMENT_SEALED || s->state == SEGMENT_STORING))
            return true;
    }
    return false;
}

int rooms_segments(const struct tier_rooms *r)
{
    int n = 0;
    for (int i = 0; i < r->made; i++)
        n += r->staging[i]->segment && r->staging[i]->segment->state != SEGMENT_DRAINING;
    return n;
}

bool rooms_store_goes_on(const struct tier_rooms *r)
{
    for (int i = 0; i < r->made; i++) {
        const struct segment *s = r->staging[i]->segment;
        if (s && (s->state == SEGMENT_STORING || may_be_stored(s)))
            return true;
    }
    return r->making;
}

static bool storing_hangs(const struct tier_rooms *r)
{
    uint64_t since = r->making ? r->making : r->stock->busy;
    return since && clock_now() - since > DISK_PATIENCE;
}

/* One step towards an open segment. 0: look again; otherwise there is none. */
static int step_to_open(struct tier_rooms *r, uint64_t *deadline)
{
    struct stock *k = r->stock;
    struct staging_area *staging = free_staging(r);
    if (staging)
        return begin_segment(r, staging);
    if (!r->making && r->made < r->most)
        return make_staging(r);
    if (k->resting || storing_hangs(r))
        return -EBUSY;
    if (rooms_store_goes_on(r))
        *deadline = clock_now() + PATIENCE;
    else if (clock_now() > *deadline)
        return -EBUSY;
    cond_wait_until(&k->changed, &k->lock, clock_now() + 100 * MILLISECOND);
    return 0;
}

struct need {
    uint32_t file, length;
    uint64_t offset, budget;
    size_t staging;
    uint32_t values;
    bool in_blocks;
};

static struct need need_of(const struct catalog *c, uint32_t file, uint64_t offset, uint32_t length)
{
    bool in_blocks = file_in_blocks(c, file);
    uint32_t whole = length / VALUE_BYTES, rest = length % VALUE_BYTES, values = whole + (rest > 0);
    uint64_t stored = length + (uint64_t)values * VALUE_HEADER + (in_blocks ? value_sums(length) : 0);
    return (struct need){
        .file = file,
        .length = length,
        .offset = offset,
        .budget = stored + (uint64_t)values * VALUE_COST,
        .staging = whole * align_value(VALUE_BYTES, in_blocks) + (rest ? align_value(rest, in_blocks) : 0),
        .values = values,
        .in_blocks = in_blocks,
    };
}

static bool fits(const struct segment *s, const struct need *need)
{
    return s->used + need->staging <= s->staging->size && s->places + need->values <= SEGMENT_PLACES;
}

static void give_room(struct tier_rooms *r, const struct need *need, struct room *room)
{
    struct segment *s = r->open;
    uint32_t length = need->length;
    *room = (struct room){.values = (int)need->values,
                          .rooms = r,
                          .segment = s,
                          .place = s->places,
                          .file = need->file,
                          .offset = need->offset,
                          .bytes = need->budget};
    for (uint32_t i = 0; i < need->values; i++) {
        uint32_t raw = length < VALUE_BYTES ? length : VALUE_BYTES;
        s->staging->place[s->places++] =
            (struct value_place){need->file, (uint32_t)(need->offset / VALUE_BYTES) + i, (uint32_t)s->used, 0};
        room->value[i] = (struct iovec){s->staging->bytes + s->used + VALUE_HEADER, raw};
        s->used += align_value(raw, need->in_blocks);
        length -= raw;
    }
    s->rooms++;
    r->touched = clock_now();
    s->held += need->budget;
    r->stock->held += need->budget;
}

/* The caller holds the lock. 0; 1: the budget is used up; else -errno. */
static int find_room(struct tier_rooms *r, const struct need *need)
{
    struct stock *k = r->stock;
    uint64_t deadline = clock_now() + PATIENCE;
    int error = 0;
    while (!error) {
        if (k->state != TIER_OPEN || need->staging > k->segment_bytes ||
            k->held + need->budget + (r->open ? 0 : SEGMENT_COST) > k->capacity)
            return 1;
        if (r->open && fits(r->open, need))
            return 0;
        if (r->open)
            rooms_seal(r);
        else
            error = step_to_open(r, &deadline);
    }
    return error;
}

int rooms_reserve(struct tier_rooms *r, uint32_t file, uint64_t offset, uint32_t length, struct room *room)
{
    struct stock *k = r->stock;
    struct need need = need_of(k->map->catalog, file, offset, length);
    pthread_mutex_lock(&k->lock);
    int error = find_room(r, &need);
    if (!error)
        give_room(r, &need, room);
    pthread_mutex_unlock(&k->lock);
    if (error < 0 && error != -EBUSY && !stock_may_recover(error))
        stock_close(k, error);
    return error ? -ENOSPC : 0;
}

/* The room is returned; `kept` of its budget stays in use. */
static void end_room(struct room *room, uint64_t kept)
{
    struct tier_rooms *r = room->rooms;
    struct stock *k = r->stock;
    struct segment *s = room->segment;
    uint64_t back = room->bytes - kept;
    pthread_mutex_lock(&k->lock);
    s->held -= back;
    k->held -= back;
    s->rooms--;
    r->touched = clock_now();
    if (may_be_stored(s))
        pthread_cond_signal(&k->work);
    pthread_mutex_unlock(&k->lock);
    room->segment = NULL;
}

/* Copied before it is checked, so that the stored bytes are the checked ones. */
int rooms_take(struct room *room, uint32_t i, const void *bytes, uint32_t length)
{
    const struct catalog *c = room->rooms->stock->map->catalog;
    uint64_t seed = value_seed(catalog_file_seed(c, room->file), room->offset / VALUE_BYTES + i);
    size_t raw = room->value[i].iov_len;
    char *at = (char *)room->value[i].iov_base - VALUE_HEADER;
    if (length > VALUE_HEADER + raw + (file_in_blocks(c, room->file) ? value_sums(raw) : 0))
        return -EBADMSG;
    memcpy(at, bytes, length);
    int error = value_check(at, length, seed, raw);
    room->sealed[i] = error ? 0 : length;
    return error;
}

static bool worth_trying(const struct catalog *c, const struct room *room)
{
    size_t n;
    const char *name = catalog_name(c, catalog_file_ino(c, room->file), &n);
    const struct iovec *first = &room->value[0];
    /* formats are recognised only by a file's first bytes */
    size_t head = room->offset || room->sealed[0] ? 0 : first->iov_len;
    return value_worth_trying(name, first->iov_base, head, catalog_file(c, room->file).size);
}

/* If one value does not shrink, the rest of the room is not tried. */
static void seal_values(const struct catalog *c, struct value_codec_state *codec, const struct room *room,
                        uint32_t length[])
{
    uint64_t seed = catalog_file_seed(c, room->file), value = room->offset / VALUE_BYTES;
    unsigned wish = (worth_trying(c, room) ? VALUE_TRY : 0) | (file_in_blocks(c, room->file) ? VALUE_IN_BLOCKS : 0);
    for (int i = 0; i < room->values; i++) {
        size_t raw = room->value[i].iov_len;
        void *at = (char *)room->value[i].iov_base - VALUE_HEADER;
        length[i] = room->sealed[i];
        if (length[i])
            continue;
        length[i] = (uint32_t)value_seal(codec, at, raw, value_seed(seed, value + (uint64_t)i), wish);
        if (length[i] >= VALUE_HEADER + raw)
            wish &= ~(unsigned)VALUE_TRY;
    }
}

/* Publish the room's parts. Returns the budget of those that no other thread has published before. */
static uint64_t publish(struct stock *k, const struct room *room, const uint32_t length[])
{
    struct segment *s = room->segment;
    struct value_place *place = s->staging->place + room->place;
    uint32_t step = part_values(k->map->catalog, room->file);
    uint64_t part = cut_at(k->map->parts, room->file, room->offset), kept = 0;
    for (uint32_t i = 0; i < (uint32_t)room->values; i += step, part++) {
        uint64_t bytes = 0;
        for (uint32_t j = i; j < i + step; j++) {
            place[j].length = length[j];
            bytes += length[j] + VALUE_COST;
        }
        if (map_change(k->map, part, 0, entry_make(k->name, s->number, room->place + i))) {
            atomic_fetch_add(&k->parts, 1);
            kept += bytes;
            continue;
        }
        for (uint32_t j = i; j < i + step; j++)
            place[j].length = 0;
    }
    return kept;
}

void rooms_commit(struct value_codec_state *codec, struct room *room)
{
    struct stock *k = room->rooms->stock;
    uint32_t length[PIECE_BYTES / VALUE_BYTES];
    seal_values(k->map->catalog, codec, room, length);
    end_room(room, publish(k, room, length));
}

void rooms_abandon(struct room *room)
{
    end_room(room, 0);
}
