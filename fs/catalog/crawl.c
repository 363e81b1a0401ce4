/* The queue of the crawl and its threads.
 *
 * Threads: `threads` workers take directories and chunks of directories from two stacks and put new ones there; the
 * thread that called only waits, and reports progress. Last in, first out: so the crawl goes deep first, the queue and
 * the number of directories held open stay small, and the entries of one directory are looked at soon after they were
 * read, while the source still has them at hand. */
#include "fs/catalog/crawl.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
    THREADS_DEFAULT = 16, /* suits a slow source: most of the time is spent waiting */
    THREADS_MOST = 256,
    BATCH = 32, /* directories taken at once at most */
    FDS_MOST = 512,
    PROGRESS_NS = 100000000,
};

void crawl_fail(struct crawl *c, int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&c->lock);
    if (!c->error) {
        c->error = error;
        str_addv(&c->why, format, args);
    }
    atomic_store(&c->stop, true);
    pthread_cond_broadcast(&c->work);
    pthread_cond_broadcast(&c->done);
    pthread_mutex_unlock(&c->lock);
    va_end(args);
}

/* ---- queue; all with the lock held unless they take it ---- */

static void wake(struct crawl *c, uint64_t n)
{
    if (c->waiting == 0)
        return;
    if (n > 1)
        pthread_cond_broadcast(&c->work);
    else
        pthread_cond_signal(&c->work);
}

void crawl_push_children(struct crawl *c, struct branch *n)
{
    if (n->directories == 0)
        return;
    /* Linked outside of the lock, the first child on top. */
    for (uint32_t i = 0; i + 1 < n->directories; i++)
        n->children[i].next = &n->children[i + 1];
    pthread_mutex_lock(&c->lock);
    n->children[n->directories - 1].next = c->branches;
    c->branches = &n->children[0];
    c->queued += n->directories;
    c->outstanding += n->directories;
    wake(c, n->directories);
    pthread_mutex_unlock(&c->lock);
}

void crawl_push_chunk(struct crawl *c, struct chunk *chunk)
{
    pthread_mutex_lock(&c->lock);
    *chunk_next(chunk) = c->chunks;
    c->chunks = chunk;
    c->outstanding++;
    wake(c, 1);
    pthread_mutex_unlock(&c->lock);
}

static struct chunk *pop_chunk(struct crawl *c)
{
    struct chunk *chunk = c->chunks;
    if (chunk)
        c->chunks = *chunk_next(chunk);
    return chunk;
}

/* A fair part of the stack, so that the lock is not taken for each directory. */
static unsigned pop_branches(struct crawl *c, struct branch *batch[BATCH])
{
    uint64_t fair = c->queued / c->threads + 1;
    unsigned n = 0;
    for (; n < fair && n < BATCH && c->branches; n++) {
        batch[n] = c->branches;
        c->branches = c->branches->next;
    }
    c->queued -= n;
    return n;
}

static void finished(struct crawl *c, uint64_t n)
{
    c->outstanding -= n;
    if (c->outstanding > 0)
        return;
    pthread_cond_broadcast(&c->work);
    pthread_cond_broadcast(&c->done);
}

static bool wait_for_work(struct crawl *c)
{
    while (!atomic_load(&c->stop) && c->outstanding > 0 && !c->branches && !c->chunks) {
        c->waiting++;
        pthread_cond_wait(&c->work, &c->lock);
        c->waiting--;
    }
    return !atomic_load(&c->stop) && c->outstanding > 0;
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    struct crawl *c = w->crawl;
    struct branch *batch[BATCH];
    pthread_mutex_lock(&c->lock);
    while (wait_for_work(c)) {
        struct chunk *chunk = pop_chunk(c);
        unsigned branches = chunk ? 0 : pop_branches(c, batch);
        pthread_mutex_unlock(&c->lock);
        if (chunk)
            listing_chunk(w, chunk);
        for (unsigned i = 0; i < branches; i++)
            visit_branch(w, batch[i]);
        pthread_mutex_lock(&c->lock);
        finished(c, chunk ? 1 : branches);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---- the thread that called ---- */

static int report(struct crawl *c, const struct scan_options *options)
{
    if (!options->progress)
        return 0;
    struct scan_progress now = {
        .directories = atomic_load(&c->directories),
        .files = atomic_load(&c->files),
        .bytes = atomic_load(&c->bytes),
        .reused = atomic_load(&c->reused),
    };
    return options->progress(options->user, &now);
}

static struct timespec soon(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += PROGRESS_NS;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

static void wait_for_end(struct crawl *c, const struct scan_options *options)
{
    struct timespec deadline = soon();
    pthread_mutex_lock(&c->lock);
    while (!atomic_load(&c->stop) && c->outstanding > 0) {
        if (pthread_cond_timedwait(&c->done, &c->lock, &deadline) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&c->lock);
        if (report(c, options))
            crawl_fail(c, -ECANCELED, "scan: stopped");
        deadline = soon();
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    if (!c->error && report(c, options))
        crawl_fail(c, -ECANCELED, "scan: stopped");
}

static struct worker *worker_make(struct crawl *c)
{
    struct worker *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->crawl = c;
    w->buffer = malloc(WORKER_BUFFER);
    if (!w->buffer) {
        free(w);
        return NULL;
    }
    return w;
}

static void worker_free(struct worker *w)
{
    if (w)
        free(w->buffer);
    free(w);
}

/* As many as can be had; signals stay with the thread that called. */
static unsigned start(struct crawl *c, pthread_t *thread, struct worker **worker, unsigned n)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    unsigned started = 0;
    for (; started < n; started++) {
        worker[started] = worker_make(c);
        if (!worker[started])
            break;
        if (pthread_create(&thread[started], NULL, worker_main, worker[started])) {
            worker_free(worker[started]);
            break;
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* What a stopped crawl left in the queue: chunks own memory and descriptors, branches belong to the tree. */
static void drop_chunks(struct worker *w)
{
    struct chunk *chunk;
    while ((chunk = pop_chunk(w->crawl)))
        listing_chunk(w, chunk);
}

static void run_threads(struct crawl *c, const struct scan_options *options)
{
    pthread_t thread[THREADS_MOST];
    struct worker *worker[THREADS_MOST];
    unsigned n = start(c, thread, worker, c->threads);
    if (n == 0) {
        crawl_fail(c, -EAGAIN, "scan: start a thread: %s", strerror(EAGAIN));
        return;
    }
    wait_for_end(c, options);
    for (unsigned i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    drop_chunks(worker[0]);
    for (unsigned i = 0; i < n; i++)
        worker_free(worker[i]);
}

static int fds_to_spare(unsigned threads)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return FDS_MOST;
    /* A thread holds up to a few at a time; the rest is shared with whatever the process has open. */
    rlim_t needed = 64 + 4 * (rlim_t)threads;
    rlim_t spare = limit.rlim_cur > needed ? (limit.rlim_cur - needed) / 2 : 0;
    return spare < FDS_MOST ? (int)spare : FDS_MOST;
}

static void crawl_init(struct crawl *c, struct branch *root, const struct scan_options *options)
{
    int wanted = options->threads > 0 ? options->threads : THREADS_DEFAULT;
    c->threads = (unsigned)(wanted < THREADS_MOST ? wanted : THREADS_MOST);
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->work, &monotonic);
    pthread_cond_init(&c->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    atomic_store(&c->spare_fds, fds_to_spare(c->threads));
    root->next = NULL;
    c->branches = root;
    c->queued = c->outstanding = 1;
}

int crawl_run(struct crawl *c, struct branch *root, const struct scan_options *options, struct str *why)
{
    crawl_init(c, root, options);
    run_threads(c, options);
    if (c->error && c->why.data)
        str_adds(why, c->why.data);
    str_fini(&c->why);
    pthread_cond_destroy(&c->work);
    pthread_cond_destroy(&c->done);
    pthread_mutex_destroy(&c->lock);
    return c->error;
}
