/* The loader.
 *
 * Threads: `threads` workers. One that has nothing to do waits for `work`; the others hold no lock while they read the
 * source, compress, or answer. Readers only take the lock to park. A worker takes, in this order: reads to be served
 * directly, loads that readers wait for, what only the feeder waits for, of either kind, and other loads. What is
 * fed may take all workers but one, for a loader comes for it soon, and the rest `most_later` of them: so a reader
 * never waits for a whole round of feeding or staging. Where one of these is stuck, more may be, and what is fed has
 * no more than the rest.
 *
 * What a load brings comes from the node that kept it before, as far as that has it, else from the source. What is only
 * pulled, and not found there, is not brought, unless somebody else has come for it meanwhile: then it runs again.
 *
 * A load that found room ends with its bytes in a tier: its waiters then ask the tiers again. One that found none ends
 * before it read anything: each of its waiters is given back, to be answered by the node that kept it before or
 * directly, by reading from the source just what it asked for into memory of its own, and nothing is kept. So is a read
 * that gets no further though its loads succeed, because a tier loses what it is given. What is being read directly is
 * bounded by MOST_DIRECT bytes.
 *
 * store_resume, store_refused, store_end, stage_loaded and the peers are called without the lock. */
#include "fs/store/loader.h"

#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"
#include "fs/store/store-inside.h"
#include "fs/store/store-stage.h"
#include "fs/store/wants.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_DIRECT = 24 << 20,
    AT_ONCE = SPAN_BYTES / VALUE_BYTES, /* values that another node is asked for */
    MOST_TRIES = 4,                     /* of a read, without getting further */
    IDLE_MS = 1500,
    STUCK_MS = 1000,
};

struct load_worker {
    struct loader *loader;
    pthread_t thread;
    struct value_codec_state *codec;
    struct store_read *serving; /* loader's lock: being served directly; NULL: none, or loader_stop took it away */
    uint64_t since; /* loader's lock: when it began what no reader waited for; 0: that is not what it does */
};

struct loader {
    struct store *store;
    atomic_bool full; /* the last load that asked for room got none */

    pthread_mutex_t lock;
    pthread_cond_t work;     /* something to do for a worker, or `stopping` */
    struct wants wants;      /* lock */
    struct read_list direct; /* lock */
    struct read_list fed;    /* lock: to be served directly to the feeder */
    size_t direct_bytes;     /* lock: being read directly */
    int fed_yields;          /* lock: to readers */
    int later_yields;        /* lock: to the feeder */
    int later_running;       /* lock: for the feeder, too */
    int most_fed, most_later;
    int sleeping;  /* lock: workers that wait for `work` */
    bool touched;  /* lock: the source was used since it was last told to be idle */
    bool stopping; /* lock */

    int workers;
    struct load_worker worker[];
};

static void wake_workers(struct loader *l, int workers)
{
    for (int i = 0; i < workers && i < l->sleeping; i++)
        pthread_cond_signal(&l->work);
}

/* Serving directly. */

static struct read_list *direct_list(struct loader *l, const struct store_read *read)
{
    return read->fed ? &l->fed : &l->direct;
}

/* From memory what is there, the rest from the source. What an SSD holds is rather read from the source, with what lies
 * around it, than that a worker waits for the SSD. */
static int gather_direct(const struct store *store, const struct span *span, struct answer *answer)
{
    struct layer *source = store->source;
    uint64_t to, end = span->offset + span->length;
    int error = 0;
    for (uint64_t at = span->offset; !error && at < end; at = to) {
        enum tier_name tier;
        struct answer got;
        to = shard_run(store->shard, span, at, TIER_RAM, &tier);
        struct span run = {.file = span->file, .length = (uint32_t)(to - at), .offset = at};
        answer_init(&got);
        if (shard_get(store->shard, &run, TIER_RAM, &got, &tier))
            error = source->ops->get(source, &run, &got);
        if (error)
            answer_release(&got);
        else
            error = answer_append(answer, &got, &run);
    }
    if (error)
        answer_release(answer);
    return error;
}

/* Unless the read was taken away meanwhile: then it may not exist any more. */
static void end_direct(struct load_worker *w, struct store_read *read, struct answer *answer, int error)
{
    struct loader *l = w->loader;
    pthread_mutex_lock(&l->lock);
    bool ours = w->serving == read;
    w->serving = NULL;
    pthread_mutex_unlock(&l->lock);
    if (!ours) {
        answer_release(answer);
        return;
    }
    read->answer = *answer;
    read->place = PLACE_SOURCE;
    store_waits_no_more(l->store, read, PLACE_SOURCE);
    store_end(l->store, read, error);
}

/* With the lock, which is let go in between. */
static void serve_direct(struct load_worker *w, struct store_read *read)
{
    struct loader *l = w->loader;
    struct span span = read->span;
    struct answer answer;
    bool here = read->here;
    answer_init(&answer);
    w->serving = read;
    l->direct_bytes += span.length;
    l->touched = true;
    pthread_mutex_unlock(&l->lock);

    struct layer *source = l->store->source;
    int error = here ? source->ops->get(source, &span, &answer) : gather_direct(l->store, &span, &answer);
    end_direct(w, read, &answer, error);

    pthread_mutex_lock(&l->lock);
    l->direct_bytes -= span.length;
    wake_workers(l, 1);
}

/* Running loads. */

/* Values of another node on their way into a room. */
struct values_in {
    struct room *room;
    uint32_t first;
};

static int take_value(void *user, uint32_t i, const void *bytes, uint32_t length)
{
    struct values_in *in = user;
    return shard_take(in->room, in->first + i, bytes, length);
}

/* How many values the node that kept them before has given, from the first on; the error is why not all. */
static int bring_values(const struct store *store, const struct load *load, struct room *room, int *error)
{
    const struct store_peers *peers = &store->peers;
    struct values_in in = {.room = room};
    uint32_t first = (uint32_t)(load->offset / VALUE_BYTES), values = (uint32_t)room->values;
    *error = peers->before ? 0 : -ENOENT;
    while (!*error && in.first < values) {
        uint32_t count = values - in.first < AT_ONCE ? values - in.first : AT_ONCE;
        *error = peers->before(peers->user, load->file, first + in.first, count, take_value, &in);
        in.first += *error ? 0 : count;
    }
    return (int)in.first;
}

/* Does anybody want it who takes it from the source, too? */
static bool is_only_pulled(struct loader *l, const struct load *load)
{
    pthread_mutex_lock(&l->lock);
    bool pulled = load->pulled;
    pthread_mutex_unlock(&l->lock);
    return pulled;
}

/* The rest of a room. */
static int read_values(const struct store *store, const struct load *load, struct room *room, int have)
{
    struct layer *source = store->source;
    uint32_t done = (uint32_t)have * VALUE_BYTES;
    struct span span = {.file = load->file, .offset = load->offset + done, .length = load->length - done};
    for (int i = have; i < room->values; i++)
        room->sealed[i] = 0;
    return source->ops->read(source, &span, room->value + have, room->values - have);
}

static int fill_room(struct load_worker *w, struct load *load, struct room *room)
{
    int error, have = bring_values(w->loader->store, load, room, &error);
    load->from = PLACE_PEER;
    if (have == room->values || is_only_pulled(w->loader, load))
        return error;
    load->from = PLACE_SOURCE;
    return read_values(w->loader->store, load, room, have);
}

/* -ENOSPC: there was no room, and nothing was read. */
static int load_into_tier(struct load_worker *w, struct load *load)
{
    const struct store *store = w->loader->store;
    struct room room;
    bool refused = shard_reserve(store->shard, load->file, load->offset, load->length, &room) < 0;
    atomic_store_explicit(&w->loader->full, refused, memory_order_relaxed);
    if (refused)
        return -ENOSPC;
    int error = fill_room(w, load, &room);
    if (error)
        shard_abandon(&room);
    else
        shard_commit(w->codec, &room);
    return error == -ENOSPC ? -EIO : error;
}

/* A load that fails at a bad sector fails for who asked for that only: who wants less than all of it reads for itself.
 */
static void divide_waiting(struct loader *l, struct load *load, struct read_list *failed)
{
    for (struct store_read *read; (read = read_list_take(&load->waiting));)
        TAILQ_INSERT_TAIL(read->span.length < load->length ? direct_list(l, read) : failed, read, parked);
}

static void serve_waiting(struct loader *l, struct load *load)
{
    for (struct store_read *read; (read = read_list_take(&load->waiting));)
        TAILQ_INSERT_TAIL(direct_list(l, read), read, parked);
}

/* -ENOSPC: there is no room for what they wait for. */
static void resume_waiting(struct loader *l, struct read_list *waiting, enum place from, int error)
{
    for (struct store_read *read; (read = read_list_take(waiting));) {
        store_waits_no_more(l->store, read, PLACE_SOURCE);
        read->brought = from > read->brought ? from : read->brought;
        if (error == -ENOSPC)
            store_refused(l->store, read);
        else if (error)
            store_end(l->store, read, error);
        else
            store_resume(l->store, read);
    }
}

static void tell_wishes(const struct loader *l, const struct load *load, int error)
{
    const struct store_peers *peers = &l->store->peers;
    if (load->told[LOAD_STAGE])
        stage_loaded(l->store->stage, load->told[LOAD_STAGE], load->file, load->length, error);
    if (load->told[LOAD_PULL])
        peers->pulled(peers->user, load->told[LOAD_PULL], load->file, load->offset, load->length, error);
}

/* With the lock, which is let go in between. */
static void run_load(struct load_worker *w, struct load *load)
{
    struct loader *l = w->loader;
    l->touched = true;
    pthread_mutex_unlock(&l->lock);

    int error = load_into_tier(w, load);
    log_debug("loader", "file %u, %u bytes at %llu: %s", load->file, load->length, (unsigned long long)load->offset,
              error ? strerror(-error) : "stored");

    pthread_mutex_lock(&l->lock);
    if (error && load->from == PLACE_PEER && !load->pulled && !l->stopping) {
        load->from = PLACE_RAM;
        wants_queue(&l->wants, load);
        return;
    }
    struct read_list waiting = TAILQ_HEAD_INITIALIZER(waiting);
    loads_remove(load);
    if (error == -EIO && !l->stopping)
        divide_waiting(l, load, &waiting);
    else if (error == -ENOSPC && !l->store->peers.before && !l->stopping)
        serve_waiting(l, load);
    else
        TAILQ_CONCAT(&waiting, &load->waiting, parked);
    if (!TAILQ_EMPTY(&l->direct) || !TAILQ_EMPTY(&l->fed))
        pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);

    tell_wishes(l, load, error);
    resume_waiting(l, &waiting, load->from, error);
    free(load);
    pthread_mutex_lock(&l->lock);
}

/* The workers. */

static bool may_serve(const struct loader *l, const struct read_list *list, size_t most)
{
    const struct store_read *first = TAILQ_FIRST(list);
    return first && (!l->direct_bytes || l->direct_bytes + first->span.length <= most);
}

static bool is_stuck(const struct loader *l)
{
    uint64_t before = clock_now() - STUCK_MS * MILLISECOND;
    bool stuck = false;
    for (int i = 0; i < l->workers; i++)
        stuck |= l->worker[i].since && l->worker[i].since < before;
    return stuck;
}

static bool may_feed(const struct loader *l)
{
    if (!may_serve(l, &l->fed, MOST_DIRECT / 2) && !l->wants.fed.count)
        return false;
    return l->later_running < l->most_later || (l->later_running < l->most_fed && !is_stuck(l));
}

enum turn { TURN_NOBODY, TURN_READERS, TURN_FED, TURN_LATER };

static enum turn whose_turn(struct loader *l)
{
    bool readers = may_serve(l, &l->direct, MOST_DIRECT) || l->wants.urgent.count;
    bool fed = may_feed(l);
    bool later = l->later_running < l->most_later && l->wants.later.count;
    if (turn_comes(&l->fed_yields, readers, fed))
        return !readers && turn_comes(&l->later_yields, true, later) ? TURN_LATER : TURN_FED;
    return readers ? TURN_READERS : later ? TURN_LATER : TURN_NOBODY;
}

static void work_for_readers(struct load_worker *w)
{
    struct loader *l = w->loader;
    if (may_serve(l, &l->direct, MOST_DIRECT))
        serve_direct(w, read_list_take(&l->direct));
    else
        run_load(w, load_queue_take(&l->wants.urgent));
}

static void work_for_others(struct load_worker *w, enum turn turn)
{
    struct loader *l = w->loader;
    l->later_running++;
    w->since = clock_now();
    if (turn == TURN_LATER)
        run_load(w, load_queue_take(&l->wants.later));
    else if (may_serve(l, &l->fed, MOST_DIRECT / 2))
        serve_direct(w, read_list_take(&l->fed));
    else
        run_load(w, load_queue_take(&l->wants.fed));
    w->since = 0;
    l->later_running--;
    wake_workers(l, 1);
}

/* The first worker that had nothing to do for a while tells the source so; the others then sleep for good. */
static void sleep_for_work(struct loader *l)
{
    l->sleeping++;
    if (!l->touched) {
        pthread_cond_wait(&l->work, &l->lock);
        l->sleeping--;
        return;
    }
    bool woken = cond_wait_until(&l->work, &l->lock, clock_now() + IDLE_MS * MILLISECOND);
    l->sleeping--;
    if (woken || !l->touched)
        return;
    l->touched = false;
    pthread_mutex_unlock(&l->lock);
    layer_idle(l->store->source);
    pthread_mutex_lock(&l->lock);
}

static void *worker_main(void *argument)
{
    struct load_worker *w = argument;
    struct loader *l = w->loader;
    pthread_mutex_lock(&l->lock);
    while (!l->stopping) {
        enum turn turn = whose_turn(l);
        if (turn == TURN_NOBODY)
            sleep_for_work(l);
        else if (turn == TURN_READERS)
            work_for_readers(w);
        else
            work_for_others(w, turn);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

static int start_worker(struct loader *l, struct load_worker *w, int zstd_level)
{
    w->loader = l;
    w->codec = value_codec_create(zstd_level);
    if (!w->codec)
        return -ENOMEM;
    int error = thread_create(&w->thread, "load", worker_main, w);
    if (error) {
        value_codec_destroy(w->codec);
        return error;
    }
    l->workers++;
    return 0;
}

int loader_create(struct store *store, int threads, int zstd_level, struct loader **loader)
{
    threads = threads > 0 ? threads : 1;
    struct loader *l = calloc(1, sizeof *l + (size_t)threads * sizeof l->worker[0]);
    if (!l)
        return -ENOMEM;
    l->store = store;
    TAILQ_INIT(&l->direct);
    TAILQ_INIT(&l->fed);
    wants_init(&l->wants, store->catalog, store->shard);
    l->wants.most_ahead = 2 * threads;
    int for_readers = threads / 4 > 0 ? threads / 4 : 1;
    l->most_later = threads > for_readers ? threads - for_readers : 1;
    l->most_fed = threads > 1 ? threads - 1 : 1;
    pthread_mutex_init(&l->lock, NULL);
    cond_init(&l->work);
    for (int i = 0; i < threads; i++) {
        int error = start_worker(l, &l->worker[i], zstd_level);
        if (error) {
            loader_destroy(l);
            return error;
        }
    }
    *loader = l;
    return 0;
}

void loader_stop(struct loader *l)
{
    struct read_list waiting = TAILQ_HEAD_INITIALIZER(waiting);
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    for (int i = 0; i < LOAD_BUCKETS; i++) {
        struct load *load;
        LIST_FOREACH(load, &l->wants.loads.bucket[i], same_bucket)
        TAILQ_CONCAT(&waiting, &load->waiting, parked);
    }
    TAILQ_CONCAT(&waiting, &l->direct, parked);
    TAILQ_CONCAT(&waiting, &l->fed, parked);
    for (int i = 0; i < l->workers; i++) {
        if (l->worker[i].serving)
            TAILQ_INSERT_TAIL(&waiting, l->worker[i].serving, parked);
        l->worker[i].serving = NULL;
    }
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    resume_waiting(l, &waiting, PLACE_RAM, -ESHUTDOWN);
}

void loader_destroy(struct loader *l)
{
    if (!l)
        return;
    int saved = errno;
    loader_stop(l);
    for (int i = 0; i < l->workers; i++) {
        pthread_join(l->worker[i].thread, NULL);
        value_codec_destroy(l->worker[i].codec);
    }
    wants_fini(&l->wants);
    pthread_cond_destroy(&l->work);
    pthread_mutex_destroy(&l->lock);
    free(l);
    errno = saved;
}

/* Parking. */

/* A span of many parts parks for one after the other. */
static void count_try(struct store_read *read, const struct load *load)
{
    uint64_t lacks = 1 + (load->offset > read->span.offset ? load->offset : read->span.offset);
    read->tries = lacks > read->lacked ? 0 : read->tries + 1;
    if (lacks > read->lacked)
        read->lacked = lacks;
}

static int park_on_load(struct loader *l, struct store_read *read)
{
    struct load *load;
    bool ahead = !atomic_load_explicit(&l->full, memory_order_relaxed);
    int error = wants_read(&l->wants, read, ahead, &load);
    if (error)
        return error;
    if (!load) {
        read->tries++;
        return -EAGAIN;
    }
    count_try(read, load);
    TAILQ_INSERT_TAIL(&load->waiting, read, parked);
    return -EINPROGRESS;
}

int loader_park(struct loader *l, struct store_read *read)
{
    int error = -EINPROGRESS;
    pthread_mutex_lock(&l->lock);
    if (l->stopping)
        error = -ESHUTDOWN;
    else if (read->tries >= MOST_TRIES)
        TAILQ_INSERT_TAIL(direct_list(l, read), read, parked);
    else
        error = park_on_load(l, read);
    if (error == -EINPROGRESS)
        store_waits(l->store, read, PLACE_SOURCE);
    wake_workers(l, l->wants.urgent.count + l->wants.fed.count + l->wants.later.count + !TAILQ_EMPTY(&l->direct) +
                        !TAILQ_EMPTY(&l->fed));
    pthread_mutex_unlock(&l->lock);
    return error;
}

int loader_direct(struct loader *l, struct store_read *read)
{
    pthread_mutex_lock(&l->lock);
    bool stopping = l->stopping;
    if (!stopping) {
        TAILQ_INSERT_TAIL(direct_list(l, read), read, parked);
        store_waits(l->store, read, PLACE_SOURCE);
        wake_workers(l, 1);
    }
    pthread_mutex_unlock(&l->lock);
    return stopping ? -ESHUTDOWN : -EINPROGRESS;
}

/* The worker that serves it finds it gone and lets go of what it has read. */
static bool take_from_worker(struct loader *l, const struct store_read *read)
{
    for (int i = 0; i < l->workers; i++)
        if (l->worker[i].serving == read) {
            l->worker[i].serving = NULL;
            return true;
        }
    return false;
}

bool loader_cancel(struct loader *l, struct store_read *read)
{
    pthread_mutex_lock(&l->lock);
    bool found =
        wants_abandon(&l->wants, read) || read_list_remove(direct_list(l, read), read) || take_from_worker(l, read);
    pthread_mutex_unlock(&l->lock);
    if (found)
        store_waits_no_more(l->store, read, PLACE_SOURCE);
    return found;
}

int loader_wish(struct loader *l, enum load_wish wish, uint32_t number, uint32_t file, uint64_t offset, uint64_t *held)
{
    pthread_mutex_lock(&l->lock);
    int notices = l->stopping ? -ESHUTDOWN : wants_piece(&l->wants, wish, number, file, offset, held);
    if (notices > 0)
        wake_workers(l, 1);
    pthread_mutex_unlock(&l->lock);
    return notices;
}

void loader_forget(struct loader *l, enum load_wish wish, uint32_t number)
{
    pthread_mutex_lock(&l->lock);
    wants_forget(&l->wants, wish, number);
    pthread_mutex_unlock(&l->lock);
}
