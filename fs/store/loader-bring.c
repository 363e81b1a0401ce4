/* The second half of the loader: fetches bytes that no tier has: from the previous owner, from memory, from the
 * source. */
#include "fs/store/loader-inside.h"
#include "fs/store/proof.h"

#include "fs/base/cleanup.h"
#include "fs/base/thread.h"

#include <errno.h>

enum { AT_ONCE = SPAN_BYTES / VALUE_BYTES }; /* values per question to another node */

/* Does a reader other than the feeder wait for this load? load NULL: for the read that the worker serves? */
static bool is_for_reader(const struct load_worker *w, const struct load *load)
{
    const struct store_read *read = w->serving;
    if (!load)
        return read && !read->fed;
    TAILQ_FOREACH(read, &load->waiting, parked)
        if (!read->fed)
            return true;
    return false;
}

/* Wait until the rate allows to read the source. -ESHUTDOWN; -ECANCELED: the served read was cancelled. */
static int pay_for(struct load_worker *w, const struct load *load, uint64_t bytes)
{
    struct loader *l = w->loader;
    if (!l->rate.most)
        return 0;
    LOCK_SCOPE(&l->lock);
    bool later = w->since != 0;
    w->since = 0; /* not stuck */
    l->paying++;
    for (uint64_t due; (due = rate_due(&l->rate, is_for_reader(w, load))) > clock_now();) {
        if (l->stopping || (!load && !w->serving))
            break;
        cond_wait_until(&l->due, &l->lock, due);
    }
    l->paying--;
    w->since = later ? clock_now() : 0;
    int error = l->stopping ? -ESHUTDOWN : !load && !w->serving ? -ECANCELED : 0;
    if (!error)
        rate_pay(&l->rate, is_for_reader(w, load), bytes, clock_now());
    return error;
}

bool loader_pays(const struct loader *l)
{
    return atomic_load(&l->paying) > 0;
}

static int get_from_source(struct load_worker *w, const struct span *span, struct answer *answer)
{
    struct layer *source = w->loader->store->source;
    int error = pay_for(w, NULL, span->length);
    return error ? error : source->ops->get(source, span, answer);
}

/* Before anything is loaded of a file in doubt: compare a cached value with the source. 0: there is no doubt any more.
 * -EBUSY: no cached value can be looked at now. -ESTALE: they differ. */
static int settle(struct load_worker *w, const struct load *load, uint32_t file)
{
    struct store *s = w->loader->store;
    struct answer cached;
    struct span span;
    if (!doubts_hide(&s->doubts, file))
        return 0;
    if (doubts_about(&s->doubts, file) == DOUBT_STALE)
        return -ESTALE;
    answer_init(&cached);
    int error = proof_draw(s, file, &span, &cached);
    if (error && error != -ENOENT)
        return error;
    if (!error) {
        CLEANUP_FREE char *bytes = malloc(span.length);
        error = bytes ? pay_for(w, load, span.length) : -ENOMEM;
        if (!error)
            error = s->source->ops->read(s->source, &span, &(struct iovec){bytes, span.length}, 1);
        bool differs = !error && !proof_equal(&cached, bytes, span.length);
        answer_release(&cached);
        if (differs) {
            proof_drop(s, file, true);
            return -ESTALE;
        }
        if (error)
            return error;
    }
    doubts_change(&s->doubts, file, DOUBT_OPEN, DOUBT_NONE);
    return 0;
}

/* Parts that the RAM tier has are taken from there, the rest from the source. Parts on the SSD are also read from the
 * source: the worker must not wait for the SSD. */
int load_gather(struct load_worker *w, const struct span *span, bool here, struct answer *answer)
{
    const struct store *store = w->loader->store;
    uint64_t to, end = span->offset + span->length;
    int error = settle(w, NULL, span->file);
    if (error && error != -EBUSY)
        return error;
    error = 0;
    if (here || doubts_hide(&store->doubts, span->file))
        return get_from_source(w, span, answer);
    for (uint64_t at = span->offset; !error && at < end; at = to) {
        enum tier_name tier;
        struct answer got;
        to = shard_run(store->shard, span, at, TIER_RAM, &tier);
        struct span run = {.file = span->file, .length = (uint32_t)(to - at), .offset = at};
        answer_init(&got);
        if (shard_get(store->shard, &run, TIER_RAM, &got, &tier))
            error = get_from_source(w, &run, &got);
        if (error)
            answer_release(&got);
        else
            error = answer_append(answer, &got, &run);
    }
    if (error)
        answer_release(answer);
    return error;
}

/* Values from another node that go into a room. */
struct values_in {
    struct room *room;
    uint32_t first;
};

static int take_value(void *user, uint32_t i, const void *bytes, uint32_t length)
{
    struct values_in *in = user;
    return shard_take(in->room, in->first + i, bytes, length);
}

/* Number of leading values that came from the previous owner. *error: why not all came. */
static int bring_values(const struct store *store, const struct load *load, struct room *room, int *error)
{
    const struct store_peers *peers = &store->peers;
    struct values_in in = {.room = room};
    uint32_t first = (uint32_t)(load->offset / VALUE_BYTES), values = (uint32_t)room->values;
    *error = peers->before ? 0 : -ENOENT;
    while (!*error && in.first < values) {
        uint32_t count = values - in.first < AT_ONCE ? values - in.first : AT_ONCE;
        const struct value_run run = {load->file, first + in.first, count};
        *error = peers->before(peers->user, &run, take_value, &in);
        in.first += *error ? 0 : count;
    }
    return (int)in.first;
}

/* Is it only for a pull? Then the source is not read. */
static bool is_only_pulled(struct loader *l, const struct load *load)
{
    LOCK_SCOPE(&l->lock);
    return load->pulled;
}

/* Read the rest of a room from the source. */
static int read_values(struct load_worker *w, const struct load *load, struct room *room, int have)
{
    struct layer *source = w->loader->store->source;
    uint32_t done = (uint32_t)have * VALUE_BYTES;
    struct span span = {.file = load->file, .offset = load->offset + done, .length = load->length - done};
    for (int i = have; i < room->values; i++)
        room->sealed[i] = 0;
    int error = pay_for(w, load, span.length);
    return error ? error : source->ops->read(source, &span, room->value + have, room->values - have);
}

static int fill_room(struct load_worker *w, struct load *load, struct room *room)
{
    int error, have = bring_values(w->loader->store, load, room, &error);
    load->from = PLACE_PEER;
    if (have == room->values || is_only_pulled(w->loader, load))
        return error;
    load->from = PLACE_SOURCE;
    return read_values(w, load, room, have);
}

int load_into_tier(struct load_worker *w, struct load *load)
{
    const struct store *store = w->loader->store;
    struct span span = {load->file, load->length, load->offset};
    struct room room;
    bool in_doubt = doubts_hide(&store->doubts, load->file);
    int error = settle(w, load, load->file);
    if (error)
        return error == -EBUSY ? -ENOSPC : error;
    if (in_doubt && shard_holds(store->shard, &span))
        return 0;
    bool refused = shard_reserve(store->shard, load->file, load->offset, load->length, &room) < 0;
    atomic_store_explicit(&w->loader->full, refused, memory_order_relaxed);
    if (refused)
        return -ENOSPC;
    error = fill_room(w, load, &room);
    if (error)
        shard_abandon(&room);
    else
        shard_commit(w->codec, &room);
    return error == -ENOSPC ? -EIO : error;
}
