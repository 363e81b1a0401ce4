/* Staging.
 *
 * Threads: one driver, which walks the catalog and asks the loader for piece after piece, with at most MOST_LOADS on
 * their way; it waits for `moved`. Workers of the loader report in stage_loaded. Any thread starts, stops and looks.
 *
 *   idle ──start──▶ running ──▶ done, or stopped ──start──▶ running …
 *
 * Each start is a stage with a number of its own, so that what still comes back from one that was stopped is not taken
 * for the next one's. What is held already is only counted, so staging goes on where it stopped. When load after load
 * finds no room the tiers are full: the rest of the catalog is only counted too. A file that fails is counted and
 * passed. What is another node's is not even counted.
 *
 * Lock order: `control`, then `lock`; the loader is called without `lock`. */
#include "fs/store/stage.h"

#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/store/loader.h"
#include "fs/store/share.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MOST_LOADS = 64,
    FEW_LOADS = 32,    /* the driver goes on when no more are on their way */
    MOST_REFUSED = 64, /* loads in a row without room; a smaller one may still fit after a few */
    LOCKED_POLL_MS = 50,
};

struct stage {
    const struct catalog *catalog;
    struct shard *shard;

    pthread_mutex_t control; /* starts and joins the driver */
    pthread_t driver;        /* control */
    bool started;            /* control: `driver` is to be joined */
    struct loader *loader;   /* control while no driver runs */
    struct share running;    /* the same: the share of this stage */

    pthread_mutex_t lock;
    pthread_cond_t moved;           /* loads came back, or `stop` */
    struct stage_progress progress; /* lock; elapsed: only when not running */
    struct share share;             /* lock: of the next stage */
    uint64_t began;                 /* lock */
    uint32_t number;                /* lock: of this stage; from 1 */
    int loads;                      /* lock: on their way; a notice can come before its load is counted */
    int refused;                    /* lock: in a row */
    bool stop;                      /* lock */
    bool unwanted;                  /* lock: it was stopped since it was started, even if it was done by then */
    bool again;                     /* lock: when the driver has ended there is more to stage */
    uint32_t failed[MOST_LOADS];    /* lock: the files that failed last, so that each counts once */
};

static struct stage_progress totals(const struct stage *s, const struct share *share)
{
    struct stage_progress p = {0};
    share_count(share, s->catalog, &p.files_total, &p.bytes_total);
    return p;
}

int stage_create(const struct catalog *catalog, struct shard *shard, struct stage **stage)
{
    struct stage *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->catalog = catalog;
    s->shard = shard;
    s->progress = totals(s, &s->share);
    pthread_mutex_init(&s->control, NULL);
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->moved, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *stage = s;
    return 0;
}

static bool stopped(struct stage *s)
{
    pthread_mutex_lock(&s->lock);
    bool stop = s->stop;
    pthread_mutex_unlock(&s->lock);
    return stop;
}

/* ---- the driver ---- */

static bool is_full(const struct stage *s)
{
    return s->refused >= MOST_REFUSED;
}

static void fail(struct stage *s, int error)
{
    pthread_mutex_lock(&s->lock);
    s->progress.state = STAGE_FAILED;
    s->progress.error = error;
    s->stop = true;
    pthread_mutex_unlock(&s->lock);
}

static void wait_for_loads(struct stage *s, int most)
{
    while (s->loads > most && !s->stop)
        pthread_cond_wait(&s->moved, &s->lock);
}

static void stage_piece(struct stage *s, uint32_t file, uint64_t offset)
{
    pthread_mutex_lock(&s->lock);
    if (s->loads >= MOST_LOADS)
        wait_for_loads(s, FEW_LOADS);
    uint32_t number = is_full(s) ? 0 : s->number;
    pthread_mutex_unlock(&s->lock);

    uint64_t held = 0;
    int loads = loader_stage(s->loader, number, file, offset, &held);
    if (loads < 0) {
        fail(s, loads);
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->loads += loads;
    s->progress.kept += held;
    s->progress.bytes += held;
    pthread_mutex_unlock(&s->lock);
}

static void stage_file(struct stage *s, uint32_t file)
{
    uint64_t size = catalog_file(s->catalog, file).size;
    bool first = share_has(&s->running, file, 0), ours = first;
    for (uint64_t at = 0; at < size && !stopped(s); at += PIECE_BYTES) {
        if (at > 0 && at % EXTENT_BYTES == 0)
            ours = share_has(&s->running, file, at);
        if (ours)
            stage_piece(s, file, at);
    }
    pthread_mutex_lock(&s->lock);
    s->progress.files += first && !s->stop;
    pthread_mutex_unlock(&s->lock);
}

/* A tier that the server before us still has open takes nothing yet. */
static bool any_locked(struct stage *s)
{
    bool locked = false;
    for (enum tier_name tier = 0; tier < TIERS; tier++) {
        struct tier_status status;
        shard_status(s->shard, tier, &status);
        locked |= status.state == TIER_LOCKED;
    }
    return locked;
}

static void wait_for_tiers(struct stage *s)
{
    while (!stopped(s) && any_locked(s)) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOCKED_POLL_MS * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&s->lock);
        if (!s->stop)
            pthread_cond_timedwait(&s->moved, &s->lock, &until);
        pthread_mutex_unlock(&s->lock);
    }
}

/* With the lock. The totals are those of before, until they are counted. */
static void begin(struct stage *s)
{
    const struct stage_progress *before = &s->progress;
    s->progress = (struct stage_progress){.state = STAGE_RUNNING,
                                          .round = before->round,
                                          .files_total = before->files_total,
                                          .bytes_total = before->bytes_total};
    s->began = clock_now();
    s->loads = s->refused = 0;
    s->again = false;
    s->number++;
    memset(s->failed, 0xff, sizeof s->failed);
}

/* False: there is more to stage. */
static bool finish(struct stage *s)
{
    pthread_mutex_lock(&s->lock);
    struct stage_progress *p = &s->progress;
    bool again = s->again && p->state == STAGE_RUNNING && !s->stop;
    if (again) {
        begin(s);
    } else {
        if (p->state == STAGE_RUNNING)
            p->state = s->stop ? STAGE_STOPPED : STAGE_DONE;
        if (p->state == STAGE_DONE)
            p->bytes = p->bytes_total;
        p->elapsed = clock_now() - s->began;
        s->number++;
    }
    pthread_mutex_unlock(&s->lock);
    return !again;
}

static void flush(struct stage *s)
{
    int error = shard_flush(s->shard);
    if (error)
        log_warning("store what was staged: %s", strerror(-error));
}

static void walk(struct stage *s)
{
    for (uint32_t file = 0; file < catalog_files(s->catalog) && !stopped(s); file++)
        stage_file(s, file);
    pthread_mutex_lock(&s->lock);
    wait_for_loads(s, 0);
    uint32_t number = s->number;
    bool stop = s->stop;
    pthread_mutex_unlock(&s->lock);
    if (stop)
        loader_forget(s->loader, number);
    else
        flush(s);
}

/* What there is to do: a walk over the catalog, for which nobody waits. */
static void count(struct stage *s)
{
    pthread_mutex_lock(&s->lock);
    s->running = s->share;
    pthread_mutex_unlock(&s->lock);
    struct stage_progress p = totals(s, &s->running);
    pthread_mutex_lock(&s->lock);
    s->progress.files_total = p.files_total;
    s->progress.bytes_total = p.bytes_total;
    pthread_mutex_unlock(&s->lock);
}

static void *drive(void *argument)
{
    struct stage *s = argument;
    wait_for_tiers(s);
    do {
        count(s);
        walk(s);
    } while (!finish(s));
    return NULL;
}

static void count_failed(struct stage *s, uint32_t file, int error)
{
    for (int i = 0; i < MOST_LOADS; i++)
        if (s->failed[i] == file)
            return;
    s->failed[s->progress.failed++ % MOST_LOADS] = file;
    if (!s->progress.error)
        s->progress.error = error;
}

void stage_loaded(struct stage *s, uint32_t number, uint32_t file, uint32_t length, int error)
{
    pthread_mutex_lock(&s->lock);
    if (number == s->number) {
        struct stage_progress *p = &s->progress;
        s->loads--;
        p->bytes += length;
        if (!error)
            p->kept += length;
        s->refused = error == -ENOSPC ? s->refused + 1 : 0;
        if (error && error != -ENOSPC)
            count_failed(s, file, error);
        if (s->loads <= FEW_LOADS)
            pthread_cond_signal(&s->moved);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- from outside ---- */

static void join(struct stage *s)
{
    if (s->started)
        pthread_join(s->driver, NULL);
    s->started = false;
}

static int start_driver(struct stage *s)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = -pthread_create(&s->driver, NULL, drive, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* One that was told of already, or an earlier one, is nothing new. */
static bool is_news(struct stage *s, uint64_t round)
{
    pthread_mutex_lock(&s->lock);
    bool news = round == 0 || round > s->progress.round;
    pthread_mutex_unlock(&s->lock);
    return news;
}

/* With the lock. */
static void note_round(struct stage *s, uint64_t round)
{
    if (round > s->progress.round)
        s->progress.round = round;
    s->unwanted = false;
}

/* What runs already goes on, now under this round as well. */
static bool joins(struct stage *s, uint64_t round)
{
    pthread_mutex_lock(&s->lock);
    bool runs = s->progress.state == STAGE_RUNNING && !s->stop;
    if (runs)
        note_round(s, round);
    pthread_mutex_unlock(&s->lock);
    return runs;
}

/* No driver runs, or one that has been stopped. A round is never seen with the state of the one before. */
static int start(struct stage *s, struct loader *loader, uint64_t round)
{
    join(s);
    s->loader = loader;
    pthread_mutex_lock(&s->lock);
    note_round(s, round);
    s->stop = false;
    begin(s);
    pthread_mutex_unlock(&s->lock);
    int error = start_driver(s);
    s->started = !error;
    if (error)
        fail(s, error);
    return error;
}

int stage_start(struct stage *s, struct loader *loader, uint64_t round)
{
    int error = 0;
    pthread_mutex_lock(&s->control);
    if (is_news(s, round) && !joins(s, round))
        error = start(s, loader, round);
    pthread_mutex_unlock(&s->control);
    return error;
}

/* Is there anything to be gone on with? A driver that runs goes on by itself. */
static bool take_more(struct stage *s, uint64_t round, bool *runs)
{
    pthread_mutex_lock(&s->lock);
    *runs = s->progress.state == STAGE_RUNNING;
    bool more = (*runs || s->progress.state == STAGE_DONE) && !s->unwanted;
    if (more && *runs) {
        note_round(s, round);
        s->again = true;
    }
    pthread_mutex_unlock(&s->lock);
    return more;
}

int stage_again(struct stage *s, struct loader *loader, uint64_t round)
{
    bool runs;
    int error = 0;
    pthread_mutex_lock(&s->control);
    if (take_more(s, round, &runs) && !runs)
        error = start(s, loader, round);
    pthread_mutex_unlock(&s->control);
    return error;
}

void stage_set_share(struct stage *s, bool (*keeps_it)(void *, uint32_t, uint64_t), void *user)
{
    pthread_mutex_lock(&s->lock);
    s->share = (struct share){keeps_it, user};
    pthread_mutex_unlock(&s->lock);
}

void stage_stop(struct stage *s)
{
    pthread_mutex_lock(&s->lock);
    s->unwanted = true;
    if (s->progress.state == STAGE_RUNNING)
        s->stop = true;
    pthread_cond_signal(&s->moved);
    pthread_mutex_unlock(&s->lock);
}

void stage_join(struct stage *s)
{
    if (!s)
        return;
    stage_stop(s);
    pthread_mutex_lock(&s->control);
    join(s);
    pthread_mutex_unlock(&s->control);
}

void stage_destroy(struct stage *s)
{
    if (!s)
        return;
    int saved = errno;
    stage_join(s);
    pthread_cond_destroy(&s->moved);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->control);
    free(s);
    errno = saved;
}

void stage_progress(struct stage *s, struct stage_progress *progress)
{
    pthread_mutex_lock(&s->lock);
    *progress = s->progress;
    if (progress->state == STAGE_RUNNING)
        progress->elapsed = clock_now() - s->began;
    pthread_mutex_unlock(&s->lock);
}
