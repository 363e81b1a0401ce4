/* The loader.
 *
 * Threads: `threads` workers. An idle worker waits for `work`. The others hold no lock while they read the source,
 * compress, or answer. Readers take the lock only to park. A worker takes, in this order:
 * 1. reads to be served directly; 2. loads that readers wait for; 3. reads and loads for the feeder; 4. other loads.
 * All workers except one may do 3, whose results a loader will soon need; at most `most_later` workers do 4. So a
 * reader never waits for a whole round of feeding or staging. If one of these is stuck, more workers may start, and the
 * feeder gets only those that remain.
 *
 * A load takes its bytes from the previous owner as far as that has them, else from the source. A load that is only a
 * pull does not read the source; if a reader joined it meanwhile, it runs again.
 *
 * A load that found room ends with its bytes in a tier; its readers then ask the tiers again. A load without room ends
 * before it reads. Its readers are then answered by the previous owner, or directly: a worker reads exactly their span
 * from the source into memory, and nothing is cached. The same happens to a read that makes no progress because a tier
 * loses what it stores. Direct reads use at most MOST_DIRECT bytes.
 *
 * With a rate, a worker waits before it reads the source (rate.h). store_resume, store_refused, store_end, stage_loaded
 * and the peers are called without the lock. */
#include "fs/store/loader-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"
#include "fs/store/store-inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_DIRECT = 24 << 20,
    MOST_TRIES = 4, /* of a read that makes no progress */
    IDLE_MS = 1500,
    STUCK_MS = 1000,
};

static void wake_workers(struct loader *l, int workers)
{
    for (int i = 0; i < workers && i < l->sleeping; i++)
        pthread_cond_signal(&l->work);
}

/* --- serving directly --- */

/* Not if the read was cancelled meanwhile: it may no longer exist. */
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

/* With the lock, which is released in between. */
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

    end_direct(w, read, &answer, load_gather(w, &span, here, &answer));

    pthread_mutex_lock(&l->lock);
    l->direct_bytes -= span.length;
    wake_workers(l, 1);
}

/* --- running loads --- */

/* After EIO, only readers of the whole load fail. The others read their own span directly: it may not touch the bad
 * sector. */
static void divide_waiting(struct loader *l, struct load *load, struct read_list *failed)
{
    for (struct store_read *read; (read = read_list_take(&load->waiting));)
        if (read->span.length < load->length)
            fair_add(&l->direct, read);
        else
            TAILQ_INSERT_TAIL(failed, read, parked);
}

static void serve_waiting(struct loader *l, struct load *load)
{
    for (struct store_read *read; (read = read_list_take(&load->waiting));)
        fair_add(&l->direct, read);
}

/* -ENOSPC: there was no room. */
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
        peers->pulled(peers->user, load->told[LOAD_PULL], &(struct span){load->file, load->length, load->offset},
                      error);
}

/* With the lock, which is released in between. */
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
    if (!fair_is_empty(&l->direct))
        pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);

    tell_wishes(l, load, error);
    resume_waiting(l, &waiting, load->from, error);
    free(load);
    pthread_mutex_lock(&l->lock);
}

/* --- the workers --- */

static bool may_serve(const struct loader *l, bool fed)
{
    const struct store_read *first = TAILQ_FIRST(&l->direct.list[fed]);
    size_t most = fed ? MOST_DIRECT / 2 : MOST_DIRECT;
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
    if (!may_serve(l, true) && !l->wants.fed.count)
        return false;
    return l->later_running < l->most_later || (l->later_running < l->most_fed && !is_stuck(l));
}

enum load_turn { TURN_NOBODY, TURN_READERS, TURN_FED, TURN_LATER };

static enum load_turn whose_turn(struct loader *l)
{
    bool readers = may_serve(l, false) || l->wants.urgent.count;
    bool later = l->later_running < l->most_later && l->wants.later.count;
    enum fair_room fed = may_feed(l) ? FAIR_WITHIN : FAIR_FULL, rest = later ? FAIR_WITHIN : FAIR_FULL;
    bool feds_turn = fair_is_feds_turn(&l->turns, readers, fed);
    if (readers && !feds_turn)
        return TURN_READERS;
    if (!readers && fair_is_feds_turn(&l->later_turns, feds_turn, rest))
        return TURN_LATER;
    return feds_turn ? TURN_FED : TURN_NOBODY;
}

static void work_for_readers(struct load_worker *w)
{
    struct loader *l = w->loader;
    fair_went(&l->turns, false);
    if (may_serve(l, false))
        serve_direct(w, read_list_take(&l->direct.list[false]));
    else
        run_load(w, load_queue_take(&l->wants.urgent));
}

static void work_for_others(struct load_worker *w, enum load_turn turn)
{
    struct loader *l = w->loader;
    l->later_running++;
    w->since = clock_now();
    fair_went(&l->later_turns, turn == TURN_LATER);
    if (turn == TURN_FED)
        fair_went(&l->turns, true);
    if (turn == TURN_LATER)
        run_load(w, load_queue_take(&l->wants.later));
    else if (may_serve(l, true))
        serve_direct(w, read_list_take(&l->direct.list[true]));
    else
        run_load(w, load_queue_take(&l->wants.fed));
    w->since = 0;
    l->later_running--;
    wake_workers(l, 1);
}

/* The first worker that was idle for a while calls the source's idle; then all sleep until there is work. */
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
    LOCK_SCOPE(&l->lock);
    while (!l->stopping) {
        enum load_turn turn = whose_turn(l);
        if (turn == TURN_NOBODY)
            sleep_for_work(l);
        else if (turn == TURN_READERS)
            work_for_readers(w);
        else
            work_for_others(w, turn);
    }
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

int loader_create(struct store *store, int threads, int zstd_level, uint64_t rate, struct loader **loader)
{
    struct loader *l = calloc(1, sizeof *l + (size_t)threads * sizeof l->worker[0]);
    if (!l)
        return -ENOMEM;
    l->store = store;
    l->rate.most = rate;
    fair_init(&l->direct);
    wants_init(&l->wants, store->catalog, store->shard, &store->doubts);
    l->wants.most_ahead = 2 * threads;
    int for_readers = threads / 4 > 0 ? threads / 4 : 1;
    l->most_later = threads > for_readers ? threads - for_readers : 1;
    l->most_fed = threads > 1 ? threads - 1 : 1;
    pthread_mutex_init(&l->lock, NULL);
    cond_init(&l->work);
    cond_init(&l->due);
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
    TAILQ_CONCAT(&waiting, &l->direct.list[false], parked);
    TAILQ_CONCAT(&waiting, &l->direct.list[true], parked);
    for (int i = 0; i < l->workers; i++) {
        if (l->worker[i].serving)
            TAILQ_INSERT_TAIL(&waiting, l->worker[i].serving, parked);
        l->worker[i].serving = NULL;
    }
    pthread_cond_broadcast(&l->work);
    pthread_cond_broadcast(&l->due);
    pthread_mutex_unlock(&l->lock);
    resume_waiting(l, &waiting, PLACE_RAM, -ESHUTDOWN);
}

void loader_destroy(struct loader *l)
{
    if (!l)
        return;
    KEEP_ERRNO;
    loader_stop(l);
    for (int i = 0; i < l->workers; i++) {
        pthread_join(l->worker[i].thread, NULL);
        value_codec_destroy(l->worker[i].codec);
    }
    wants_fini(&l->wants);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->due);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* --- parking --- */

/* A span of several parts parks for one after the other; this counts attempts without progress. */
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
    if (!load->queued)
        pthread_cond_broadcast(&l->due);
    return -EINPROGRESS;
}

int loader_park(struct loader *l, struct store_read *read)
{
    int error = -EINPROGRESS;
    LOCK_SCOPE(&l->lock);
    if (l->stopping)
        error = -ESHUTDOWN;
    else if (read->tries >= MOST_TRIES)
        fair_add(&l->direct, read);
    else
        error = park_on_load(l, read);
    if (error == -EINPROGRESS)
        store_waits(l->store, read, PLACE_SOURCE);
    wake_workers(l, l->wants.urgent.count + l->wants.fed.count + l->wants.later.count + !fair_is_empty(&l->direct));
    return error;
}

int loader_direct(struct loader *l, struct store_read *read)
{
    LOCK_SCOPE(&l->lock);
    if (l->stopping)
        return -ESHUTDOWN;
    fair_add(&l->direct, read);
    store_waits(l->store, read, PLACE_SOURCE);
    wake_workers(l, 1);
    return -EINPROGRESS;
}

/* The worker finds the read gone, and discards what it has read. */
static bool take_from_worker(struct loader *l, const struct store_read *read)
{
    for (int i = 0; i < l->workers; i++)
        if (l->worker[i].serving == read) {
            l->worker[i].serving = NULL;
            pthread_cond_broadcast(&l->due);
            return true;
        }
    return false;
}

bool loader_cancel(struct loader *l, struct store_read *read)
{
    pthread_mutex_lock(&l->lock);
    bool found = wants_abandon(&l->wants, read) || fair_remove(&l->direct, read) || take_from_worker(l, read);
    pthread_mutex_unlock(&l->lock);
    if (found)
        store_waits_no_more(l->store, read, PLACE_SOURCE);
    return found;
}

int loader_wish(struct loader *l, enum load_wish wish, uint32_t number, uint32_t file, uint64_t offset, uint64_t *held)
{
    LOCK_SCOPE(&l->lock);
    int notices = l->stopping ? -ESHUTDOWN : wants_piece(&l->wants, wish, number, file, offset, held);
    if (notices > 0)
        wake_workers(l, 1);
    return notices;
}

void loader_forget(struct loader *l, enum load_wish wish, uint32_t number)
{
    LOCK_SCOPE(&l->lock);
    wants_forget(&l->wants, wish, number);
}
