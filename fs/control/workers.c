/* A queue per class of work, and its threads.
 *
 * Threads: those of the classes, which wait for `more`; and one that regularly checks whether queued work is still
 * wanted. */
#include "fs/control/workers.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Some wait for the source, so there are more than most nodes have cores. */
enum {
    DECODERS = 16,
    STREAMERS = 16,
    SLOW_STREAMERS = 8,
    TURNERS = 8 /* a request that waits for a turn should not wait for another one */
};
/* The sum is below CONTROL_SLOTS, so that some slots always remain free. */
static const struct {
    int threads, wait;
} bounds[WORK_CLASSES] = {[WORK_QUICK] = {1, 32},         [WORK_LONG] = {2, 256},
                          [WORK_TURN] = {TURNERS, 8},     [WORK_END] = {4, 128},
                          [WORK_OTHERS] = {1, 16},        [WORK_DECODE] = {DECODERS, 256},
                          [WORK_DECODE_OTHERS] = {2, 64}, [WORK_STREAM] = {STREAMERS, 128},
                          [WORK_STREAM_OTHERS] = {2, 32}, [WORK_STREAM_SLOW] = {SLOW_STREAMERS, 96}};
enum {
    THREADS = 1 + 1 + 2 + TURNERS + 4 + 1 + DECODERS + 2 + STREAMERS + 2 + SLOW_STREAMERS,
    TICK_MS = 50,
    REST_AFTER = 5 /* seconds */
};

TAILQ_HEAD(work_list, request_work);

struct queue {
    struct workers *workers;
    struct work_list waiting;
    int count;
    pthread_cond_t more; /* signals: work was queued, or the end */
};

struct workers {
    struct work_rules rules;
    pthread_mutex_t lock; /* guards all fields below */
    struct queue queue[WORK_CLASSES];
    int running;
    pthread_cond_t begun; /* signals: there is work, or the end */
    atomic_bool stopping;
    pthread_t thread[THREADS];
    int threads;
};

bool workers_stopping(const struct workers *w)
{
    return atomic_load(&w->stopping);
}

static bool any_work(const struct workers *w)
{
    int count = w->running;
    for (int i = 0; i < WORK_CLASSES; i++)
        count += w->queue[i].count;
    return count > 0;
}

static void queue_remove(struct queue *queue, struct request_work *work)
{
    TAILQ_REMOVE(&queue->waiting, work, next);
    queue->count--;
}

static void *worker_main(void *user)
{
    struct queue *queue = user;
    struct workers *w = queue->workers;
    pthread_mutex_lock(&w->lock);
    while (!workers_stopping(w)) {
        struct request_work *work = TAILQ_FIRST(&queue->waiting);
        if (!work) {
            pthread_cond_wait(&queue->more, &w->lock);
            continue;
        }
        queue_remove(queue, work);
        w->running++;
        pthread_mutex_unlock(&w->lock);
        w->rules.run(work);
        pthread_mutex_lock(&w->lock);
        w->running--;
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Removed work goes into a list, to be dropped without the lock. */
static void drop_unwanted(struct workers *w)
{
    struct work_list unwanted = TAILQ_HEAD_INITIALIZER(unwanted);
    struct request_work *work, *next;
    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < WORK_CLASSES; i++)
        for (work = TAILQ_FIRST(&w->queue[i].waiting); work; work = next) {
            next = TAILQ_NEXT(work, next);
            if (!workers_stopping(w) && !w->rules.gave_up(work))
                continue;
            queue_remove(&w->queue[i], work);
            TAILQ_INSERT_TAIL(&unwanted, work, next);
        }
    pthread_mutex_unlock(&w->lock);
    while ((work = TAILQ_FIRST(&unwanted))) {
        TAILQ_REMOVE(&unwanted, work, next);
        w->rules.drop(work);
    }
}

/* Called with the lock, which it releases meanwhile. */
static void wait_for_work(struct workers *w)
{
    uint64_t until = clock_now() + REST_AFTER * SECOND;
    while (!any_work(w) && !workers_stopping(w))
        if (until == 0)
            pthread_cond_wait(&w->begun, &w->lock);
        else if (!cond_wait_until(&w->begun, &w->lock, until)) {
            until = 0;
            pthread_mutex_unlock(&w->lock);
            if (w->rules.rest)
                w->rules.rest(w->rules.user);
            pthread_mutex_lock(&w->lock);
        }
}

static void *tender_main(void *user)
{
    struct workers *w = user;
    pthread_mutex_lock(&w->lock);
    while (!workers_stopping(w)) {
        if (!any_work(w)) {
            wait_for_work(w);
            continue;
        }
        pthread_mutex_unlock(&w->lock);
        drop_unwanted(w);
        w->rules.tick(w->rules.user);
        clock_sleep(TICK_MS * MILLISECOND);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static int start_thread(struct workers *w, const char *name, void *(*body)(void *), void *user)
{
    int error = thread_create(&w->thread[w->threads], name, body, user);
    w->threads += error == 0;
    return error;
}

static int start_all(struct workers *w)
{
    int error = start_thread(w, "requests", tender_main, w);
    for (int class = 0; class < WORK_CLASSES; class ++)
        for (int i = 0; i < bounds[class].threads && !error; i++)
            error = start_thread(w, "request", worker_main, &w->queue[class]);
    return error;
}

int workers_create(const struct work_rules *rules, struct workers **workers)
{
    struct workers *w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    w->rules = *rules;
    pthread_mutex_init(&w->lock, NULL);
    cond_init(&w->begun);
    for (int i = 0; i < WORK_CLASSES; i++) {
        w->queue[i].workers = w;
        TAILQ_INIT(&w->queue[i].waiting);
        pthread_cond_init(&w->queue[i].more, NULL);
    }
    int error = start_all(w);
    if (error)
        workers_destroy(w);
    else
        *workers = w;
    return error;
}

void workers_destroy(struct workers *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->stopping, true);
    pthread_cond_broadcast(&w->begun);
    for (int i = 0; i < WORK_CLASSES; i++)
        pthread_cond_broadcast(&w->queue[i].more);
    pthread_mutex_unlock(&w->lock);
    while (w->threads > 0)
        pthread_join(w->thread[--w->threads], NULL);
    drop_unwanted(w);
    for (int i = 0; i < WORK_CLASSES; i++)
        pthread_cond_destroy(&w->queue[i].more);
    pthread_cond_destroy(&w->begun);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

bool workers_any_wait(struct workers *w, enum work_class class)
{
    LOCK_SCOPE(&w->lock);
    return w->queue[class].count > 0;
}

/* It was admitted before, so no limit applies. If the workers end, it is dropped. */
void workers_add_again(struct workers *w, struct request_work *work)
{
    struct queue *queue = &w->queue[work->class];
    LOCK_SCOPE(&w->lock);
    TAILQ_INSERT_TAIL(&queue->waiting, work, next);
    queue->count++;
    pthread_cond_signal(&queue->more);
}

int workers_add(struct workers *w, struct request_work *work)
{
    struct queue *queue = &w->queue[work->class];
    LOCK_SCOPE(&w->lock);
    int error = queue->count < bounds[work->class].wait && !workers_stopping(w) ? 0 : -EBUSY;
    if (!error) {
        TAILQ_INSERT_TAIL(&queue->waiting, work, next);
        queue->count++;
        pthread_cond_signal(&queue->more);
        pthread_cond_signal(&w->begun);
    }
    return error;
}
