/* The queue of the crawl and its threads.
 *
 * Threads: `threads` workers take directories and parts of directories from two stacks and push new ones; the calling
 * thread waits and reports progress. Stacks make the crawl go deep first. So the queue and the number of open
 * directories stay small, and the entries of a directory are looked at soon after they were read, while the source
 * still has them cached. */
#include "fs/catalog/crawl.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    THREADS_DEFAULT = 64, /* for slow sources: most time is spent waiting */
    THREADS_MOST = 256,
    BATCH = 32, /* maximum number of directories taken together */
    FDS_MOST = 512,
    FDS_OWN = 64,
    FDS_THREAD = 4,
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

/* --- queue; the caller holds the lock, unless the function takes it --- */

static void wake_workers(struct crawl *c, uint64_t n)
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
    /* linked before taking the lock, the first child on top */
    for (uint32_t i = 0; i + 1 < n->directories; i++)
        n->children[i].next = &n->children[i + 1];
    LOCK_SCOPE(&c->lock);
    n->children[n->directories - 1].next = c->branches;
    c->branches = &n->children[0];
    c->queued += n->directories;
    c->outstanding += n->directories;
    wake_workers(c, n->directories);
}

void crawl_push_job(struct crawl *c, struct crawl_job *job)
{
    LOCK_SCOPE(&c->lock);
    job->next = c->jobs;
    c->jobs = job;
    c->outstanding++;
    wake_workers(c, 1);
}

static struct crawl_job *pop_job(struct crawl *c)
{
    struct crawl_job *job = c->jobs;
    if (job)
        c->jobs = job->next;
    return job;
}

/* Take a fair part of the stack, so that the lock is not taken for each directory. */
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

static bool wait_for_work(struct crawl *c)
{
    while (!atomic_load(&c->stop) && c->outstanding > 0 && !c->branches && !c->jobs) {
        c->waiting++;
        pthread_cond_wait(&c->work, &c->lock);
        c->waiting--;
    }
    return !atomic_load(&c->stop) && c->outstanding > 0;
}

static void *worker_main(void *arg)
{
    struct crawl_worker *w = arg;
    struct crawl *c = w->crawl;
    struct branch *batch[BATCH];
    pthread_mutex_lock(&c->lock);
    while (wait_for_work(c)) {
        struct crawl_job *job = pop_job(c);
        unsigned branches = job ? 0 : pop_branches(c, batch);
        pthread_mutex_unlock(&c->lock);
        if (job)
            job->run(w, job);
        for (unsigned i = 0; i < branches; i++)
            c->visit(w, batch[i]);
        pthread_mutex_lock(&c->lock);
        c->outstanding -= job ? 1 : branches;
        if (c->outstanding == 0) {
            pthread_cond_broadcast(&c->work);
            pthread_cond_broadcast(&c->done);
        }
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* --- the calling thread --- */

struct scan_progress crawl_progress(struct crawl *c)
{
    return (struct scan_progress){
        .directories = atomic_load(&c->directories),
        .files = atomic_load(&c->files),
        .bytes = atomic_load(&c->bytes),
        .reused = atomic_load(&c->reused),
        .rewritten = atomic_load(&c->rewritten),
        .shared = c->shared,
    };
}

static void report(struct crawl *c, const struct scan_options *options)
{
    struct scan_progress now = crawl_progress(c);
    if (options->progress && options->progress(options->user, &now))
        crawl_fail(c, -ECANCELED, "scan: stopped");
}

static void wait_for_end(struct crawl *c, const struct scan_options *options)
{
    uint64_t deadline = clock_now() + PROGRESS_NS;
    pthread_mutex_lock(&c->lock);
    while (!atomic_load(&c->stop) && c->outstanding > 0) {
        if (cond_wait_until(&c->done, &c->lock, deadline))
            continue;
        pthread_mutex_unlock(&c->lock);
        report(c, options);
        deadline = clock_now() + PROGRESS_NS;
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    if (!c->error)
        report(c, options);
}

/* After a stop, free the queued jobs, which own memory and descriptors; branches belong to the tree. */
static void drop_jobs(struct crawl_worker *w)
{
    struct crawl_job *job;
    while ((job = pop_job(w->crawl)))
        job->run(w, job);
}

/* Start as many threads as possible. */
static void run_threads(struct crawl *c, const struct scan_options *options)
{
    pthread_t thread[THREADS_MOST];
    struct crawl_worker *worker = calloc(c->threads, sizeof *worker);
    int n = 0;
    for (; worker && n < (int)c->threads; n++) {
        worker[n].crawl = c;
        if (thread_create(&thread[n], "scan", worker_main, &worker[n]))
            break;
    }
    if (n == 0) {
        crawl_fail(c, -EAGAIN, "scan: start a thread: %s", strerror(EAGAIN));
    } else {
        wait_for_end(c, options);
        threads_join(thread, n);
        drop_jobs(worker);
    }
    free(worker);
}

/* Each thread needs a few descriptors, and the process some; the others may be used for directories that stay open. */
static void share_descriptors(struct crawl *c)
{
    struct rlimit limit;
    atomic_store(&c->spare_fds, FDS_MOST);
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return;
    rlim_t free = limit.rlim_cur > FDS_OWN ? limit.rlim_cur - FDS_OWN : 0;
    if (c->threads * (rlim_t)FDS_THREAD > free)
        c->threads = free < FDS_THREAD ? 1 : (unsigned)(free / FDS_THREAD);
    rlim_t used = c->threads * (rlim_t)FDS_THREAD, spare = free > used ? (free - used) / 2 : 0;
    if (spare < FDS_MOST)
        atomic_store(&c->spare_fds, (int)spare);
}

static void crawl_init(struct crawl *c, struct branch *root, const struct scan_options *options)
{
    int wanted = options->threads > 0 ? options->threads : THREADS_DEFAULT;
    c->threads = (unsigned)(wanted < THREADS_MOST ? wanted : THREADS_MOST);
    pthread_mutex_init(&c->lock, NULL);
    cond_init(&c->work);
    cond_init(&c->done);
    c->delay = look_delay();
    share_descriptors(c);
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
