/* The loader.
 *
 * Threads: `threads` workers. One that has nothing to do waits for `work`; the others hold no lock while they read the
 * source, compress, or answer. Readers only take the lock to park. A worker takes, in this order: reads to be served
 * directly, loads that readers wait for, and other loads, which at most `most_later` workers do at a time, so that a
 * reader never waits for a whole round of staging.
 *
 * A load that found room ends with its bytes in a tier: its waiters then ask the tiers again. One that found none ends
 * before it read anything: each of its waiters is served directly, by reading from the source just what it asked for
 * into memory of its own, and nothing is kept. So is a read that gets no further though its loads succeed, because a
 * tier loses what it is given. What is being read directly is bounded by MOST_DIRECT bytes.
 *
 * Lock order: loader, then what shard_holds takes. Callbacks are called without the lock. */
#include "fs/store/loader.h"

#include "fs/base/log.h"
#include "fs/store/wants.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MOST_DIRECT = 24 << 20,
    MOST_TRIES = 4, /* of a read, without getting further */
    IDLE_MS = 1500,
};

struct worker {
    struct loader *loader;
    pthread_t thread;
    struct value_codec_state *codec;
    struct store_read *serving; /* loader's lock: being served directly; NULL: none, or loader_stop took it away */
};

struct loader {
    struct loader_config config;
    atomic_bool full; /* the last load that asked for room got none */
    _Atomic int64_t parked;

    pthread_mutex_t lock;
    pthread_cond_t work;     /* something to do for a worker, or `stopping` */
    struct wants wants;      /* lock */
    struct read_list direct; /* lock */
    size_t direct_bytes;     /* lock: being read directly */
    int later_running;       /* lock */
    int most_later;
    int sleeping;  /* lock: workers that wait for `work` */
    bool touched;  /* lock: the source was used since it was last told to be idle */
    bool stopping; /* lock */

    int workers;
    struct worker worker[];
};

static void wake(struct loader *l, int workers)
{
    for (int i = 0; i < workers && i < l->sleeping; i++)
        pthread_cond_signal(&l->work);
}

/* Serving directly. */

static uint64_t part_end_within(struct loader *l, const struct span *span, uint64_t at)
{
    uint64_t from, to, end = span->offset + span->length;
    cut_bytes(l->config.parts, span->file, at, &from, &to);
    return to < end ? to : end;
}

static bool part_held(struct loader *l, uint32_t file, uint64_t at)
{
    enum tier_name tier;
    return shard_holds(l->config.shard, cut_at(l->config.parts, file, at), &tier);
}

static struct span span_between(const struct span *span, uint64_t from, uint64_t to)
{
    return (struct span){.file = span->file, .offset = from, .length = (uint32_t)(to - from)};
}

/* The next part from a tier, or else that and all missing ones after it from the source. */
static int gather_next(struct loader *l, const struct span *span, uint64_t *at, struct answer *answer)
{
    uint64_t end = span->offset + span->length;
    uint64_t to = part_end_within(l, span, *at);
    enum place place;
    struct span next = span_between(span, *at, to);
    *at = to;
    if (part_held(l, span->file, next.offset) && !l->config.held(l->config.user, &next, answer, &place))
        return 0;
    while (*at < end && !part_held(l, span->file, *at))
        *at = part_end_within(l, span, *at);
    next = span_between(span, next.offset, *at);
    return l->config.source->ops->get(l->config.source, &next, answer);
}

static int gather(struct loader *l, const struct span *span, struct answer *answer)
{
    int error = 0;
    for (uint64_t at = span->offset; !error && at < span->offset + span->length;)
        error = gather_next(l, span, &at, answer);
    if (error)
        answer_release(answer);
    return error;
}

static void unpark(struct loader *l)
{
    atomic_fetch_sub_explicit(&l->parked, 1, memory_order_relaxed);
}

/* Unless the read was taken away meanwhile: then it may not exist any more. */
static void end_direct(struct worker *w, struct store_read *read, struct answer *answer, int error)
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
    unpark(l);
    l->config.answered(l->config.user, read, error);
}

/* With the lock, which is let go in between. */
static void serve_direct(struct worker *w, struct store_read *read)
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

    struct layer *source = l->config.source;
    int error = here ? source->ops->get(source, &span, &answer) : gather(l, &span, &answer);
    end_direct(w, read, &answer, error);

    pthread_mutex_lock(&l->lock);
    l->direct_bytes -= span.length;
    wake(l, 1);
}

/* Running loads. */

/* `refused`: there was no room, and nothing was read. */
static int run(struct worker *w, const struct load *load, bool *refused)
{
    const struct loader_config *c = &w->loader->config;
    struct room room;
    *refused = shard_reserve(c->shard, load->file, load->offset, load->length, &room) < 0;
    atomic_store_explicit(&w->loader->full, *refused, memory_order_relaxed);
    if (*refused)
        return 0;
    struct span span = {.file = load->file, .offset = load->offset, .length = load->length};
    int error = c->source->ops->read(c->source, &span, room.value, room.values);
    if (error) {
        shard_abandon(c->shard, &room);
        return error;
    }
    error = shard_commit(c->shard, w->codec, &room);
    *refused = error < 0;
    return 0;
}

/* A load that fails at a bad sector fails for who asked for that only: who wants less than all of it reads for itself. */
static void divide_waiting(struct load *load, struct read_list *direct, struct read_list *failed)
{
    for (struct store_read *read; (read = read_list_take(&load->waiting));)
        read_list_add(read->span.length < load->length ? direct : failed, read);
}

static void resume_waiting(struct loader *l, struct read_list *waiting, int error)
{
    for (struct store_read *read; (read = read_list_take(waiting));) {
        unpark(l);
        if (error)
            l->config.answered(l->config.user, read, error);
        else
            l->config.resume(l->config.user, read);
    }
}

/* With the lock, which is let go in between. */
static void run_load(struct worker *w, struct load *load)
{
    struct loader *l = w->loader;
    l->touched = true;
    pthread_mutex_unlock(&l->lock);

    bool refused;
    int error = run(w, load, &refused);

    pthread_mutex_lock(&l->lock);
    struct read_list waiting = {0};
    loads_remove(load);
    if (error == -EIO && !l->stopping)
        divide_waiting(load, &l->direct, &waiting);
    else
        read_list_move(&load->waiting, refused && !l->stopping ? &l->direct : &waiting);
    uint32_t stage = load->staged;
    if (l->direct.first)
        pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);

    if (stage)
        l->config.staged(l->config.user, stage, load->file, load->length, refused ? -ENOSPC : error);
    resume_waiting(l, &waiting, error);
    free(load);
    pthread_mutex_lock(&l->lock);
}

/* The workers. */

static struct store_read *take_direct(struct loader *l)
{
    const struct store_read *first = l->direct.first;
    if (!first || (l->direct_bytes && l->direct_bytes + first->span.length > MOST_DIRECT))
        return NULL;
    return read_list_take(&l->direct);
}

static void run_later(struct worker *w, struct load *load)
{
    w->loader->later_running++;
    run_load(w, load);
    w->loader->later_running--;
    wake(w->loader, 1);
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
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_MS / 1000;
    until.tv_nsec += IDLE_MS % 1000 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    int late = pthread_cond_timedwait(&l->work, &l->lock, &until);
    l->sleeping--;
    if (late != ETIMEDOUT || !l->touched)
        return;
    l->touched = false;
    pthread_mutex_unlock(&l->lock);
    layer_idle(l->config.source);
    pthread_mutex_lock(&l->lock);
}

static void *worker_main(void *argument)
{
    struct worker *w = argument;
    struct loader *l = w->loader;
    pthread_mutex_lock(&l->lock);
    while (!l->stopping) {
        struct store_read *read = take_direct(l);
        struct load *load = read ? NULL : load_queue_take(&l->wants.urgent);
        if (read)
            serve_direct(w, read);
        else if (load)
            run_load(w, load);
        else if (l->later_running < l->most_later && (load = load_queue_take(&l->wants.later)))
            run_later(w, load);
        else
            sleep_for_work(l);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Signals are the main thread's. */
static int start_worker(struct loader *l, struct worker *w)
{
    w->loader = l;
    w->codec = value_codec_create(l->config.zstd_level);
    if (!w->codec)
        return -ENOMEM;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = -pthread_create(&w->thread, NULL, worker_main, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        value_codec_destroy(w->codec);
        return error;
    }
    pthread_setname_np(w->thread, "load");
    l->workers++;
    return 0;
}

static void init_work(struct loader *l)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&l->work, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

int loader_create(const struct loader_config *config, struct loader **loader)
{
    int threads = config->threads > 0 ? config->threads : 1;
    struct loader *l = calloc(1, sizeof *l + (size_t)threads * sizeof l->worker[0]);
    if (!l)
        return -ENOMEM;
    l->config = *config;
    wants_init(&l->wants, config->catalog, config->parts, config->shard);
    l->wants.most_ahead = 2 * threads;
    int for_readers = threads / 4 > 0 ? threads / 4 : 1;
    l->most_later = threads > for_readers ? threads - for_readers : 1;
    pthread_mutex_init(&l->lock, NULL);
    init_work(l);
    for (int i = 0; i < threads; i++) {
        int error = start_worker(l, &l->worker[i]);
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
    struct read_list parked = {0};
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    for (int i = 0; i < LOAD_BUCKETS; i++) {
        struct load *load;
        LIST_FOREACH(load, &l->wants.loads.bucket[i], same_bucket)
            read_list_move(&load->waiting, &parked);
    }
    read_list_move(&l->direct, &parked);
    for (int i = 0; i < l->workers; i++) {
        if (l->worker[i].serving)
            read_list_add(&parked, l->worker[i].serving);
        l->worker[i].serving = NULL;
    }
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    resume_waiting(l, &parked, -ESHUTDOWN);
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
    int error = wants_span(&l->wants, &read->span, ahead, &load);
    if (error)
        return error;
    if (!load) {
        read->tries++;
        return -EAGAIN;
    }
    count_try(read, load);
    read_list_add(&load->waiting, read);
    return -EINPROGRESS;
}

int loader_park(struct loader *l, struct store_read *read)
{
    int error = -EINPROGRESS;
    pthread_mutex_lock(&l->lock);
    if (l->stopping)
        error = -ESHUTDOWN;
    else if (read->tries >= MOST_TRIES)
        read_list_add(&l->direct, read);
    else
        error = park_on_load(l, read);
    if (error == -EINPROGRESS)
        atomic_fetch_add_explicit(&l->parked, 1, memory_order_relaxed);
    wake(l, l->wants.urgent.count + l->wants.later.count + (l->direct.first != NULL));
    pthread_mutex_unlock(&l->lock);
    return error;
}

int loader_direct(struct loader *l, struct store_read *read)
{
    pthread_mutex_lock(&l->lock);
    bool stopping = l->stopping;
    if (!stopping) {
        read_list_add(&l->direct, read);
        atomic_fetch_add_explicit(&l->parked, 1, memory_order_relaxed);
        wake(l, 1);
    }
    pthread_mutex_unlock(&l->lock);
    return stopping ? -ESHUTDOWN : -EINPROGRESS;
}

uint64_t loader_parked(struct loader *l)
{
    int64_t n = atomic_load_explicit(&l->parked, memory_order_relaxed);
    return n > 0 ? (uint64_t)n : 0;
}

int loader_stage(struct loader *l, uint32_t stage, uint32_t file, uint64_t offset, uint64_t *held)
{
    pthread_mutex_lock(&l->lock);
    int notices = l->stopping ? -ESHUTDOWN : wants_piece(&l->wants, file, offset, stage, held);
    if (notices > 0)
        wake(l, 1);
    pthread_mutex_unlock(&l->lock);
    return notices;
}

void loader_forget(struct loader *l, uint32_t stage)
{
    pthread_mutex_lock(&l->lock);
    wants_forget(&l->wants, stage);
    pthread_mutex_unlock(&l->lock);
}
