/* The way of a read:
 *
 *   in the RAM tier ───────────▶ answered at once, without a lock
 *   in the SSD tier ───────────▶ disk: by a thread that may wait for it
 *   owned here, not cached ────▶ loader_park: loaded into a tier, from the previous owner or the source; then the read
 *                                starts again. If no tier has room, the previous owner is asked
 *   owned by another node ─────▶ the peers; if no node can be asked:
 *   otherwise ─────────────────▶ loader_direct: read from the source without caching
 *
 * A tier that hangs is bypassed: its bytes are read from the source without caching. In a world, a read across two
 * extents becomes two reads, because each extent may have its own owner.
 *
 * Threads: any number read. A parked read continues on a thread of the loader, the disk or the peers. */
#include "fs/store/disk.h"
#include "fs/store/loader.h"
#include "fs/store/store-inside.h"
#include "fs/store/store.h"

#include "fs/base/clock.h"

#include <errno.h>
#include <stdlib.h>

static void count_fed(struct feed_served *served, const struct store_read *read, int error)
{
    atomic_fetch_add_explicit(error ? &served->errors : &served->reads[read->place], 1, memory_order_relaxed);
    if (!error)
        atomic_fetch_add_explicit(&served->bytes[read->place], read->span.length, memory_order_relaxed);
}

static void count_read(struct store *s, const struct store_read *read, int error)
{
    if (read->quiet)
        return;
    if (read->fed)
        count_fed(s->served, read, error);
    else if (error)
        stats_error(s->stats, read->span.file, error);
    else
        stats_read(s->stats, read->place, &read->span, read->began);
}

static void say_waits(struct store_read *read)
{
    if (read->waits && !read->waiting) {
        read->waiting = true;
        read->waits(read);
    }
}

/* Ask the tiers. `caller`: this is the thread that called store_read. */
static int ask_tiers(struct store *s, struct store_read *read, bool caller)
{
    if (doubts_hide(&s->doubts, read->span.file))
        return -ENOENT;
    if (read->here)
        return shard_holds(s->shard, &read->span) ? 0 : -ENOENT;
    enum tier_name slowest;
    if (shard_get(s->shard, &read->span, TIER_RAM, &read->answer, &slowest) == 0) {
        read->place = PLACE_RAM;
        return 0;
    }
    if (!s->disk || !shard_holds(s->shard, &read->span))
        return -ENOENT;
    say_waits(read);
    return disk_get(s->disk, read, caller);
}

static int fetch_from_peer(struct store *s, struct store_read *read)
{
    store_waits(s, read, PLACE_PEER);
    int error = s->peers.fetch(s->peers.user, read);
    if (error != -EINPROGRESS)
        store_waits_no_more(s, read, PLACE_PEER);
    return error;
}

/* Get what the tiers do not have; `past`: because one was bypassed. */
static int bring_read(struct store *s, struct store_read *read, bool past)
{
    say_waits(read);
    if (!catalog_kept_size(s->catalog, read->span.file))
        return loader_direct(s->loader, read);
    bool ours = store_keeps(s, read->span.file, read->span.offset);
    if (ours && !past)
        return loader_park(s->loader, read);
    if (!ours && read->here)
        return -ENOENT;
    if (!ours && fetch_from_peer(s, read) == -EINPROGRESS)
        return -EINPROGRESS;
    return loader_direct(s->loader, read);
}

/* Continue after the tiers. A read that was parked counts for the source, even if a tier answers it in the end. */
static int after_tiers(struct store *s, struct store_read *read, int error)
{
    if (error == -EINPROGRESS || error == -ESHUTDOWN)
        return error;
    if (error)
        return bring_read(s, read, error == -EBUSY);
    if (read->lacked)
        read->place = read->brought;
    return 0;
}

/* Run a read from the start. -EAGAIN: when it was about to park, all bytes were cached. */
static int try_read(struct store *s, struct store_read *read, bool caller)
{
    int error;
    do
        error = after_tiers(s, read, ask_tiers(s, read, caller));
    while (error == -EAGAIN);
    return error;
}

void store_end(struct store *s, struct store_read *read, int error)
{
    count_read(s, read, error);
    read->done(read, error);
}

void store_resume(struct store *s, struct store_read *read)
{
    int error = try_read(s, read, false);
    if (error != -EINPROGRESS)
        store_end(s, read, error);
}

void store_refused(struct store *s, struct store_read *read)
{
    read->before = true;
    int error = s->peers.before ? fetch_from_peer(s, read) : -ENOENT;
    if (error != -EINPROGRESS)
        error = loader_direct(s->loader, read);
    if (error != -EINPROGRESS)
        store_end(s, read, error);
}

void store_got(struct store *s, struct store_read *read, int error)
{
    if (read->drawn) {
        store_end(s, read, error);
        return;
    }
    error = after_tiers(s, read, error);
    if (error == -EAGAIN)
        error = try_read(s, read, false);
    if (error != -EINPROGRESS)
        store_end(s, read, error);
}

void store_fetched(struct store *s, struct store_read *read, int error)
{
    store_waits_no_more(s, read, PLACE_PEER);
    if (error == -ESTALE)
        doubts_change(&s->doubts, read->span.file, DOUBT_NONE, DOUBT_TOLD);
    if (error)
        error = loader_direct(s->loader, read);
    else
        read->place = PLACE_PEER;
    if (error != -EINPROGRESS)
        store_end(s, read, error);
}

/* --- a read of two extents: when the second half ends, both are joined --- */

struct half_read {
    struct store_read read; /* the first field */
    struct split_read *split;
    int error;
};

struct split_read {
    struct half_read half[2];
    struct store *store;
    struct store_read *whole;
    atomic_int left;
};

static void join_halves(struct split_read *split)
{
    struct store_read *whole = split->whole;
    int error = 0;
    for (int i = 0; i < 2; i++) {
        struct half_read *h = &split->half[i];
        if (!error)
            error = h->error;
        if (h->error)
            continue;
        if (error)
            answer_release(&h->read.answer);
        else
            error = answer_append(&whole->answer, &h->read.answer, &h->read.span);
        if (i == 0 || h->read.place > whole->place)
            whole->place = h->read.place;
    }
    if (error)
        answer_release(&whole->answer);
    store_end(split->store, whole, error);
    free(split);
}

static void half_done(struct store_read *read, int error)
{
    struct half_read *h = (struct half_read *)read;
    h->error = error;
    if (atomic_fetch_sub(&h->split->left, 1) == 1)
        join_halves(h->split);
}

static int read_halves(struct store *s, struct store_read *whole)
{
    struct split_read *split = calloc(1, sizeof *split);
    if (!split)
        return -ENOMEM;
    uint32_t first = (uint32_t)(EXTENT_BYTES - whole->span.offset % EXTENT_BYTES);
    *split = (struct split_read){.store = s, .whole = whole, .left = 2};
    for (int i = 0; i < 2; i++)
        split->half[i] = (struct half_read){
            .read = {.span = {.file = whole->span.file, .length = first, .offset = whole->span.offset},
                     .done = half_done,
                     .began = whole->began,
                     .fed = whole->fed,
                     .quiet = true},
            .split = split,
        };
    split->half[1].read.span.offset += first;
    split->half[1].read.span.length = whole->span.length - first;
    for (int i = 0; i < 2; i++) {
        int error = try_read(s, &split->half[i].read, true);
        if (error != -EINPROGRESS)
            half_done(&split->half[i].read, error);
    }
    return -EINPROGRESS;
}

/* --- interface --- */

static bool crosses_extents(const struct span *span)
{
    return span->offset / EXTENT_BYTES != (span->offset + span->length - 1) / EXTENT_BYTES;
}

static bool within_file(struct store *s, const struct span *span, uint32_t most)
{
    if (span->file >= catalog_files(s->catalog) || span->length == 0 || span->length > most)
        return false;
    uint64_t size = catalog_file(s->catalog, span->file).size;
    return span->offset < size && span->length <= size - span->offset;
}

static void begin_read(struct store_read *read)
{
    answer_init(&read->answer);
    read->lacked = 0;
    read->tries = 0;
    read->waiting = read->before = read->pulled = read->damaged = read->drawn = false;
    read->brought = PLACE_RAM;
    read->pull = NULL;
    read->peer = UINT32_MAX;
    read->began = clock_now();
}

int store_read(struct store *s, struct store_read *read)
{
    int error = -EINVAL;
    begin_read(read);
    if (within_file(s, &read->span, SPAN_BYTES))
        error = s->peers.keeps && crosses_extents(&read->span) ? read_halves(s, read) : try_read(s, read, true);
    if (error != -EINPROGRESS)
        count_read(s, read, error);
    return error;
}

int store_load(struct store *s, struct store_read *read)
{
    begin_read(read);
    read->here = read->quiet = true;
    bool right = read->span.offset % VALUE_BYTES == 0 && within_file(s, &read->span, ANSWER_VALUES * VALUE_BYTES) &&
                 !crosses_extents(&read->span);
    return right ? try_read(s, read, false) : -EINVAL;
}

static bool cancel_fetch(struct store *s, struct store_read *read)
{
    if (!s->peers.cancel || !s->peers.cancel(s->peers.user, read))
        return false;
    store_waits_no_more(s, read, PLACE_PEER);
    return true;
}

bool store_cancel(struct store *s, struct store_read *read)
{
    return loader_cancel(s->loader, read) || (s->disk && disk_cancel(s->disk, read)) || cancel_fetch(s, read);
}
