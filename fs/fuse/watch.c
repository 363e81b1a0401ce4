/* The watch over the requests in progress.
 *
 * Threads: one. `lock` guards what it waits for; it is not held while the thread reads /proc. */
#include "fs/fuse/watch.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/process.h"
#include "fs/base/thread.h"
#include "fs/fuse/reply.h"
#include "fs/wire/handover.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    SPARE = 50,         /* pause after each look, as a multiple of the look's duration */
    MOST_LET_GO = 4096, /* maximum number of requests that were answered early while their handlers still work */
    EARLY_MS = 1,
};
/* An interrupted thread that is not visible in /proc may be dead. It gets EINTR after this time; not at once, because a
 * living one would see EINTR. */
#define UNSEEN (5000 * MILLISECOND)
/* Minimum pause between two looks. */
#define LEAST_PAUSE (250 * MILLISECOND)
#define MOST_PAUSE (5000 * MILLISECOND)

struct watch {
    struct watch_config config;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* signals: `look` or `stopping` was set */
    bool look, stopping; /* guarded by lock */
    bool stopped;        /* the thread was joined */
    atomic_int let_go;   /* number of handlers whose late reply is still to come */
    struct slots_request seen[];
};

static int by_asker(const void *a, const void *b)
{
    uint32_t left = ((const struct slots_request *)a)->asker, right = ((const struct slots_request *)b)->asker;
    return left < right ? -1 : left > right;
}

static bool is_over(const struct slots_request *r, enum thread_fate fate, uint64_t now)
{
    if (fate == THREAD_UNSEEN)
        return r->interrupted && now - r->since >= UNSEEN;
    return fate == THREAD_DIES;
}

/* A request that cannot be cancelled is answered without libfuse, whose handler still works on it. Kernel and slots
 * identify it by number, and ignore the late reply. */
static void let_go(struct watch *w, uint64_t unique)
{
    if (w->config.cancel && w->config.cancel(w->config.cancel_user, unique))
        return;
    if (atomic_load(&w->let_go) >= MOST_LET_GO)
        return;
    reply_error(w->config.fd, unique, -EINTR);
    if (slots_answered(w->config.slots, unique))
        atomic_fetch_add(&w->let_go, 1);
}

void watch_late_reply(struct watch *w)
{
    atomic_fetch_sub(&w->let_go, 1);
}

/* Looks into /proc once per thread, even if it has many requests. */
static void let_dying_go(struct watch *w, int count, uint64_t now)
{
    enum thread_fate fate = THREAD_LIVES;
    qsort(w->seen, (size_t)count, sizeof *w->seen, by_asker);
    for (int i = 0; i < count; i++) {
        const struct slots_request *r = &w->seen[i];
        if (i == 0 || r->asker != r[-1].asker)
            fate = process_thread_fate((pid_t)r->asker);
        if (!is_over(r, fate, now))
            continue;
        log_debug("session", "request %" PRIu64 ": its process %u is being killed, so the reply is dropped", r->unique,
                  r->asker);
        let_go(w, r->unique);
    }
}

/* Keeps, at the front, the requests that were already in progress at the last look, or were interrupted. */
static int keep_waiting(struct watch *w, int count, uint64_t now)
{
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (w->seen[i].since != now || w->seen[i].interrupted)
            w->seen[kept++] = w->seen[i];
    return kept;
}

static void watch_say(struct watch *w, int count)
{
    struct pulse *pulse = w->config.pulse;
    uint64_t oldest = 0;
    int busy = 0;
    for (int i = 0; i < count; i++) {
        busy += w->seen[i].busy;
        if (!oldest || w->seen[i].since < oldest)
            oldest = w->seen[i].since;
    }
    atomic_store(&pulse->oldest, oldest);
    /* if every reader thread still has the request of a while ago, nobody reads new requests */
    if (busy < w->config.readers)
        atomic_fetch_add(&pulse->beats, 1);
}

static void watch_look(struct watch *w)
{
    uint64_t now = clock_now();
    int count = keep_waiting(w, slots_look(w->config.slots, now, w->seen), now);
    watch_say(w, count);
    let_dying_go(w, count, now);
}

/* False: the watch must end. */
static bool watch_rest(struct watch *w, uint64_t nanoseconds)
{
    uint64_t end = clock_now() + nanoseconds;
    LOCK_SCOPE(&w->lock);
    while (!w->stopping && !w->look && cond_wait_until(&w->wake, &w->lock, end))
        ;
    w->look = false;
    return !w->stopping;
}

static void *watch_main(void *arg)
{
    struct watch *w = arg;
    uint64_t pause = LEAST_PAUSE;
    while (watch_rest(w, pause)) {
        uint64_t began = clock_now();
        watch_look(w);
        pause = SPARE * (clock_now() - began);
        pause = pause < LEAST_PAUSE ? LEAST_PAUSE : pause > MOST_PAUSE ? MOST_PAUSE : pause;
    }
    return NULL;
}

static void watch_free(struct watch *w)
{
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

int watch_create(const struct watch_config *config, struct watch **watch)
{
    struct watch *w = calloc(1, sizeof *w + slots_count(config->slots) * sizeof w->seen[0]);
    if (!w)
        return -ENOMEM;
    w->config = *config;
    pthread_mutex_init(&w->lock, NULL);
    cond_init(&w->wake);
    int error = thread_create(&w->thread, "watch", watch_main, w);
    if (error)
        watch_free(w);
    else
        *watch = w;
    return error;
}

static void look_soon(struct watch *w)
{
    LOCK_SCOPE(&w->lock);
    w->look = true;
    pthread_cond_signal(&w->wake);
}

/* The kernel may send an INTERRUPT before the request was read here and, after a restart, before it was replayed. Then
 * -EAGAIN makes the kernel send it again. */
void watch_interrupt(struct watch *w, const struct fuse_in_header *in)
{
    struct fuse_interrupt_in body;
    if (in->len != sizeof *in + sizeof body)
        return;
    memcpy(&body, in + 1, sizeof body);
    if (slots_interrupt(w->config.slots, body.unique)) {
        look_soon(w);
    } else {
        clock_sleep(EARLY_MS * MILLISECOND);
        reply_error(w->config.fd, in->unique, -EAGAIN);
    }
}

void watch_stop(struct watch *w)
{
    if (!w || w->stopped)
        return;
    thread_stop(w->thread, &w->lock, &w->wake, &w->stopping);
    w->stopped = true;
}

void watch_destroy(struct watch *w)
{
    watch_stop(w);
    if (w)
        watch_free(w);
}
