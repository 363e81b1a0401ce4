/* Staging.
 *
 * Threads: one driver. It walks over the files and asks the loader for piece after piece, with at most MOST_LOADS in
 * progress; it waits for `moved`. Workers of the loader report with stage_loaded. Any thread may start, stop and look.
 *
 *   idle ──start──▶ running ──▶ done, or stopped ──start──▶ running …
 *
 *   1. Each start is a stage with its own number, so that late reports of a stopped stage are recognised.
 *   2. Cached bytes are only counted, so staging resumes where it stopped.
 *   3. After MOST_REFUSED loads in a row without room, the tiers are full: the remaining files are only counted.
 *   4. A file that fails is counted and skipped. So are the last loads, if none ends for PATIENCE_S.
 *   5. Files of other owners are not counted.
 *
 * Lock order: `control`, then `lock`. The loader is called without `lock`. */
#include "fs/store/store-stage.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"
#include "fs/store/loader.h"
#include "fs/store/store-inside.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_LOADS = 64,
    FEW_LOADS = 32,    /* the driver continues when at most this many are in progress */
    MOST_REFUSED = 64, /* loads in a row without room; a smaller one may still fit after a few */
    LOCKED_POLL_MS = 50,
    PATIENCE_S = 30,
};

struct stage {
    struct store *store;

    pthread_mutex_t control; /* serialises start and join of the driver */
    pthread_t driver;        /* guarded by control */
    bool started;            /* control: `driver` must be joined */

    pthread_mutex_t lock;
    pthread_cond_t moved;           /* signals the driver: loads have ended, or `stop` */
    struct stage_progress progress; /* lock; elapsed: only while not running */
    uint64_t began;                 /* guarded by lock */
    uint32_t number;                /* lock: of this stage; from 1 */
    int loads;                      /* lock: in progress; a report can come before its load is counted */
    int refused;                    /* lock: in a row */
    bool stop;                      /* guarded by lock */
    bool unwanted;                  /* lock: it was stopped since its start, even if it was already done */
    bool again;                     /* lock: there is more to stage when the driver has ended */
    struct samples *chosen;         /* control; constant while a driver runs */
    uint32_t failed[MOST_LOADS];    /* lock: the last files that failed, so that each counts once */
};

/* Bytes of the file that this node owns. */
static uint64_t kept_bytes(const struct store *store, uint32_t file)
{
    uint64_t bytes = 0, size = catalog_kept_size(store->catalog, file);
    if (!store->peers.keeps)
        return size;
    for (uint64_t from = 0; from < size; from += EXTENT_BYTES) {
        uint64_t rest = size - from;
        if (store_keeps(store, file, from))
            bytes += rest < EXTENT_BYTES ? rest : EXTENT_BYTES;
    }
    return bytes;
}

/* Count the total work, in a walk over all files. A file counts at the owner of its first byte, so that it counts once
 * in a world. */
static void count_totals(struct stage *s)
{
    uint64_t files = 0, bytes = 0;
    for (uint32_t i = 0; i < samples_count(s->chosen); i++) {
        uint32_t file = samples_file(s->chosen, i);
        files += store_keeps(s->store, file, 0);
        bytes += kept_bytes(s->store, file);
    }
    LOCK_SCOPE(&s->lock);
    s->progress.files_total = files;
    s->progress.bytes_total = bytes;
}

int stage_create(struct store *store, struct stage **stage)
{
    struct stage *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->store = store;
    pthread_mutex_init(&s->control, NULL);
    pthread_mutex_init(&s->lock, NULL);
    cond_init(&s->moved);
    s->chosen = samples_all(store->catalog);
    if (s->chosen)
        count_totals(s);
    *stage = s;
    return s->chosen ? 0 : -ENOMEM;
}

static bool is_stopped(struct stage *s)
{
    LOCK_SCOPE(&s->lock);
    return s->stop;
}

/* --- the driver --- */

static bool is_full(const struct stage *s)
{
    return s->refused >= MOST_REFUSED;
}

static void stage_fail(struct stage *s, int error)
{
    LOCK_SCOPE(&s->lock);
    s->progress.state = STAGE_FAILED;
    s->progress.error = error;
    s->stop = true;
}

static void wait_for_loads(struct stage *s, int most)
{
    while (s->loads > most && !s->stop)
        pthread_cond_wait(&s->moved, &s->lock);
}

/* False: none ended for a while. */
static bool wait_for_last_loads(struct stage *s)
{
    uint64_t patience = clock_bound("DEALFS_STAGE_PATIENCE", PATIENCE_S);
    uint64_t deadline = clock_now() + patience;
    for (int before = s->loads; s->loads > 0 && !s->stop; before = s->loads) {
        bool woken = cond_wait_until(&s->moved, &s->lock, deadline);
        if (s->loads < before || (!woken && loader_pays(s->store->loader)))
            deadline = clock_now() + patience;
        else if (!woken)
            return false;
    }
    return true;
}

/* With the lock. If these loads end later, their bytes are cached, but nobody waits for them. */
static void pass_last_loads(struct stage *s)
{
    log_warning("staging: %d pieces did not arrive in time: they are skipped", s->loads);
    s->progress.failed += (uint64_t)s->loads;
    if (!s->progress.error)
        s->progress.error = -ETIMEDOUT;
    s->loads = 0;
}

static void stage_piece(struct stage *s, uint32_t file, uint64_t offset)
{
    pthread_mutex_lock(&s->lock);
    if (s->loads >= MOST_LOADS)
        wait_for_loads(s, FEW_LOADS);
    uint32_t number = is_full(s) ? 0 : s->number;
    pthread_mutex_unlock(&s->lock);

    uint64_t held = 0;
    int loads = loader_wish(s->store->loader, LOAD_STAGE, number, file, offset, &held);
    if (loads < 0) {
        stage_fail(s, loads);
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
    uint64_t size = catalog_kept_size(s->store->catalog, file);
    bool first = store_keeps(s->store, file, 0), ours = first;
    for (uint64_t at = 0; at < size && !is_stopped(s); at += PIECE_BYTES) {
        if (at > 0 && at % EXTENT_BYTES == 0)
            ours = store_keeps(s->store, file, at);
        if (ours)
            stage_piece(s, file, at);
    }
    LOCK_SCOPE(&s->lock);
    s->progress.files += first && !s->stop;
}

static void wait_for_tiers(struct stage *s)
{
    while (!is_stopped(s) && shard_is_locked(s->store->shard)) {
        LOCK_SCOPE(&s->lock);
        if (!s->stop)
            cond_wait_until(&s->moved, &s->lock, clock_now() + LOCKED_POLL_MS * MILLISECOND);
    }
}

/* With the lock. Until they are counted, the totals are those of the previous stage. */
static void stage_begin(struct stage *s)
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
static bool stage_finish(struct stage *s)
{
    LOCK_SCOPE(&s->lock);
    struct stage_progress *p = &s->progress;
    bool again = s->again && p->state == STAGE_RUNNING && !s->stop;
    if (again) {
        stage_begin(s);
    } else {
        if (p->state == STAGE_RUNNING)
            p->state = s->stop ? STAGE_STOPPED : STAGE_DONE;
        if (p->state == STAGE_DONE)
            p->bytes = p->bytes_total;
        p->elapsed = clock_now() - s->began;
        s->number++;
    }
    return !again;
}

static void stage_files(struct stage *s)
{
    for (uint32_t i = 0; i < samples_count(s->chosen) && !is_stopped(s); i++)
        stage_file(s, samples_file(s->chosen, i));
    pthread_mutex_lock(&s->lock);
    uint32_t number = s->number;
    bool passed = !wait_for_last_loads(s), stop = s->stop;
    if (passed) {
        pass_last_loads(s);
        s->number++; /* late reports do not belong to this stage */
    }
    pthread_mutex_unlock(&s->lock);
    int error = 0;
    if (stop || passed)
        loader_forget(s->store->loader, LOAD_STAGE, number);
    if (!stop)
        error = shard_flush(s->store->shard);
    if (error)
        log_warning("store the staged data: %s", strerror(-error));
}

static void *driver_main(void *argument)
{
    struct stage *s = argument;
    wait_for_tiers(s);
    do {
        count_totals(s);
        stage_files(s);
    } while (!stage_finish(s));
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
    LOCK_SCOPE(&s->lock);
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
}

/* --- interface --- */

/* The caller holds the lock. */
static void note_round(struct stage *s, uint64_t round)
{
    if (round > s->progress.round)
        s->progress.round = round;
    s->unwanted = false;
}

/* Is there nothing to start? A round that is known, or older, is not new. A running stage with the same files
 * continues, now under this round. */
static bool joins_stage(struct stage *s, uint64_t round, const struct samples *chosen)
{
    LOCK_SCOPE(&s->lock);
    bool known = round > 0 && round <= s->progress.round;
    bool same = digest_equal(samples_digest(s->chosen), samples_digest(chosen));
    bool runs = s->progress.state == STAGE_RUNNING && !s->stop && same;
    if (runs && !known)
        note_round(s, round);
    return known || runs;
}

static void join_driver(struct stage *s)
{
    if (s->started)
        pthread_join(s->driver, NULL);
    s->started = false;
}

/* Does not wait for reads in progress. */
static void stage_stop(struct stage *s)
{
    LOCK_SCOPE(&s->lock);
    s->unwanted = true;
    if (s->progress.state == STAGE_RUNNING)
        s->stop = true;
    pthread_cond_signal(&s->moved);
}

/* No driver runs, or it was told to stop. The new round never appears with the state of the previous one. */
static int start_round(struct stage *s, uint64_t round)
{
    join_driver(s);
    pthread_mutex_lock(&s->lock);
    note_round(s, round);
    s->stop = false;
    stage_begin(s);
    pthread_mutex_unlock(&s->lock);
    int error = thread_create(&s->driver, "stage", driver_main, s);
    s->started = !error;
    if (error)
        stage_fail(s, error);
    return error;
}

/* Files that were just chosen have no totals until they are counted. */
static void choose_files(struct stage *s, struct samples *chosen)
{
    stage_stop(s);
    join_driver(s);
    pthread_mutex_lock(&s->lock);
    if (!digest_equal(samples_digest(s->chosen), samples_digest(chosen)))
        s->progress.files_total = s->progress.bytes_total = 0;
    pthread_mutex_unlock(&s->lock);
    samples_put(s->chosen);
    s->chosen = samples_get(chosen);
}

int store_stage_start(struct store *store, uint64_t round, struct samples *chosen)
{
    struct stage *s = store->stage;
    struct samples *files = chosen ? samples_get(chosen) : samples_all(store->catalog);
    int error = files ? 0 : -ENOMEM;
    pthread_mutex_lock(&s->control);
    if (!error && !joins_stage(s, round, files)) {
        choose_files(s, files);
        error = start_round(s, round);
    }
    pthread_mutex_unlock(&s->control);
    samples_put(files);
    return error;
}

/* Is there anything to continue? A running driver continues by itself. */
static bool take_more(struct stage *s, uint64_t round, bool *runs)
{
    LOCK_SCOPE(&s->lock);
    *runs = s->progress.state == STAGE_RUNNING;
    bool more = (*runs || s->progress.state == STAGE_DONE) && !s->unwanted;
    if (more && *runs) {
        note_round(s, round);
        s->again = true;
    }
    return more;
}

int store_stage_again(struct store *store, uint64_t round)
{
    struct stage *s = store->stage;
    bool runs;
    int error = 0;
    LOCK_SCOPE(&s->control);
    if (take_more(s, round, &runs) && !runs)
        error = start_round(s, round);
    return error;
}

void store_stage_stop(struct store *store)
{
    stage_stop(store->stage);
}

void stage_join(struct stage *s)
{
    if (!s)
        return;
    stage_stop(s);
    LOCK_SCOPE(&s->control);
    join_driver(s);
}

void stage_destroy(struct stage *s)
{
    if (!s)
        return;
    KEEP_ERRNO;
    stage_join(s);
    samples_put(s->chosen);
    pthread_cond_destroy(&s->moved);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->control);
    free(s);
}

void store_stage_progress(struct store *store, struct stage_progress *progress)
{
    struct stage *s = store->stage;
    LOCK_SCOPE(&s->lock);
    *progress = s->progress;
    if (progress->state == STAGE_RUNNING)
        progress->elapsed = clock_now() - s->began;
}
