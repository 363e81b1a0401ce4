/* Finds the samples that a read covers in the stream, and fetches them concurrently.
 *
 * Threads: any number of workers, each for one read. A thread of the store ends a fetch, copies its bytes, and wakes
 * the worker. */
#include "fs/control/epoch-read.h"

#include "fs/control/record-cuts.h"
#include "fs/records/tar-rename.h"
#include "fs/store/store.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FETCHES = 64, LOOK_EVERY_MS = 50 };

/* --- fetches --- */

struct gathering;
struct epoch_fetch {
    struct store_read read;
    struct gathering *gathering;
    char *to;
};

struct gathering {
    const struct stream_access *access;
    pthread_mutex_t lock; /* guards the fields below, except `fetch` */
    pthread_cond_t ended; /* signalled when fewer than `most` run, or one has failed */
    unsigned running, most;
    int error;                         /* the first error */
    bool busy[FETCHES];                /* which of `fetch` run */
    struct epoch_fetch fetch[FETCHES]; /* not initialised: most reads need few of them */
};

static void end_fetch(struct epoch_fetch *f, int error)
{
    struct gathering *g = f->gathering;
    LOCK_SCOPE(&g->lock);
    g->busy[f - g->fetch] = false;
    g->running--;
    g->error = g->error ? g->error : error;
    if (g->running < g->most || g->error)
        pthread_cond_signal(&g->ended);
}

static void fetch_ended(struct store_read *read, int error)
{
    struct epoch_fetch *f = (struct epoch_fetch *)(void *)((char *)read - offsetof(struct epoch_fetch, read));
    char *to = f->to;
    for (int i = 0; i < read->answer.pieces && !error; i++) {
        memcpy(to, read->answer.piece[i].iov_base, read->answer.piece[i].iov_len);
        to += read->answer.piece[i].iov_len;
    }
    answer_release(&read->answer);
    end_fetch(f, error);
}

static void cancel_fetches(struct gathering *g)
{
    for (int i = 0; i < FETCHES; i++) {
        pthread_mutex_lock(&g->lock);
        bool busy = g->busy[i];
        pthread_mutex_unlock(&g->lock);
        if (busy && store_cancel(g->access->store, &g->fetch[i].read))
            end_fetch(&g->fetch[i], -EINTR);
    }
}

/* Wait until fewer than `most` fetches run. If this must wait at all, it waits for half of them: an answer of another
 * node has many records, and a thread that woke up for each would ask for one record at a time. If a fetch fails, or
 * nobody waits any more, the other fetches are cancelled. */
static int await_fetches(struct gathering *g, unsigned most)
{
    pthread_mutex_lock(&g->lock);
    g->most = g->running < most ? most : (most + 1) / 2;
    while (g->running >= g->most || (g->error && g->running > 0)) {
        if (!cond_wait_until(&g->ended, &g->lock, clock_now() + LOOK_EVERY_MS * MILLISECOND)) {
            pthread_mutex_unlock(&g->lock);
            bool gone = g->access->gave_up(g->access->user);
            pthread_mutex_lock(&g->lock);
            if (gone && !g->error)
                g->error = -EINTR;
        }
        if (!g->error)
            continue;
        pthread_mutex_unlock(&g->lock);
        cancel_fetches(g);
        pthread_mutex_lock(&g->lock);
    }
    int error = g->error;
    pthread_mutex_unlock(&g->lock);
    return error;
}

static int begin_fetch(struct gathering *g, const struct span *span, char *to)
{
    int i = 0, error = await_fetches(g, FETCHES);
    if (error)
        return error;
    pthread_mutex_lock(&g->lock);
    while (g->busy[i])
        i++;
    g->busy[i] = true;
    g->running++;
    pthread_mutex_unlock(&g->lock);
    struct epoch_fetch *f = &g->fetch[i];
    f->gathering = g;
    f->to = to;
    memset(&f->read, 0, offsetof(struct store_read, answer));
    memset((char *)&f->read + offsetof(struct store_read, place), 0,
           sizeof f->read - offsetof(struct store_read, place));
    answer_init(&f->read.answer);
    f->read.span = *span;
    f->read.done = fetch_ended;
    error = store_read(g->access->store, &f->read);
    if (error != -EINPROGRESS)
        fetch_ended(&f->read, error);
    return 0;
}

static int fetch_range(struct gathering *g, uint32_t file, uint64_t offset, uint64_t n, char *bytes)
{
    int error = 0;
    for (uint64_t at = 0; at < n && !error; at += SPAN_BYTES) {
        const struct span span = {
            .file = file, .offset = offset + at, .length = n - at < SPAN_BYTES ? (uint32_t)(n - at) : SPAN_BYTES};
        error = begin_fetch(g, &span, bytes + at);
    }
    return error;
}

/* Samples that are adjacent in a file, as they are in the order of their list, are fetched together. */
struct stream_run {
    uint32_t file;
    uint64_t offset, n; /* in the file; n = 0: no sample yet */
    char *to;
};

static int run_fetch(struct gathering *g, struct stream_run *run)
{
    uint64_t n = run->n;
    run->n = 0;
    return n > 0 ? fetch_range(g, run->file, run->offset, n, run->to) : 0;
}

struct sample_part {
    const struct samples *list;
    uint32_t sample;
    uint64_t from, to;
};

static int run_add(struct gathering *g, struct stream_run *run, const struct sample_part *part, char *bytes)
{
    uint64_t length = samples_length(part->list, part->sample), from = part->from;
    uint64_t end = part->to < length ? part->to : length, offset = samples_offset(part->list, part->sample) + from;
    uint32_t file = samples_file(part->list, part->sample);
    int error = 0;
    if (part->to > length)
        bytes[length - from] = '\n'; /* RECORD_NEWLINE */
    if (from >= end)
        return 0;
    if (run->n > 0 && (file != run->file || offset != run->offset + run->n || bytes != run->to + run->n))
        error = run_fetch(g, run);
    if (run->n == 0)
        *run = (struct stream_run){file, offset, 0, bytes};
    run->n += end - from;
    return error;
}

/* --- a read --- */

/* --- other names in a tar --- */

struct renamed_record {
    struct gathering *g;
    const struct samples *list;
    uint32_t sample;
    struct tar_record record;
    uint64_t position; /* in the stream */
};

static int read_record(void *user, void *to, size_t n, uint64_t offset)
{
    struct renamed_record *r = user;
    struct stream_run run = {0};
    int error = run_add(r->g, &run, &(struct sample_part){r->list, r->sample, offset, offset + n}, to);
    error = error ? error : run_fetch(r->g, &run);
    int late = await_fetches(r->g, 1);
    return error ? error : late;
}

static int make_cut(void *user, struct tar_cut **cut)
{
    struct renamed_record *r = user;
    return tar_cut_make(&r->record, r->position, cut);
}

/* A record that other READs need as well has its cut kept for them. */
static int rename_record(const struct epoch_stream *s, struct renamed_record *r)
{
    const struct stream_access *access = r->g->access;
    bool whole = r->record.from == 0 && r->record.to == r->record.length;
    struct record_cuts_wish wish = {.stream = epoch_stream_serial(s),
                                    .position = r->position,
                                    .make = make_cut,
                                    .gave_up = access->gave_up,
                                    .make_user = r,
                                    .gave_up_user = access->user};
    struct kept_cut kept;
    int error = record_cuts_get(whole ? NULL : access->cuts, &wish, &kept);
    if (error)
        return error;
    error = tar_rename(&r->record, kept.cut);
    record_cuts_put(access->cuts, &kept);
    return error;
}

/* Renames records. What was gathered has the container's bytes. */
static int rename_samples(struct gathering *g, const struct epoch_stream *s, uint64_t offset, size_t n, char *bytes)
{
    uint64_t end = offset + n;
    struct stream_sample sample;
    int error = 0;
    for (bool more = epoch_stream_find(s, offset, &sample); more && sample.from < end && !error;
         more = epoch_stream_next(s, &sample)) {
        uint64_t from = sample.from > offset ? sample.from : offset, until = sample.to < end ? sample.to : end;
        struct renamed_record r = {.g = g,
                                   .list = epoch_stream_list(s),
                                   .sample = sample.sample,
                                   .record = {.length = sample.to - sample.from,
                                              .read = read_record,
                                              .user = &r,
                                              .from = from - sample.from,
                                              .to = until - sample.from,
                                              .bytes = bytes + (from - offset)},
                                   .position = sample.number};
        if (from < until)
            error = rename_record(s, &r);
    }
    return error == -EBADMSG || error == -ENAMETOOLONG || error == -EFBIG ? -EIO : error;
}

static int gather(struct gathering *g, const struct epoch_stream *s, uint64_t offset, size_t n, char *to)
{
    const struct samples *list = epoch_stream_list(s);
    uint64_t end = offset + n, done = offset;
    struct stream_sample sample;
    struct stream_run run = {0};
    int error = 0;
    for (bool more = epoch_stream_find(s, offset, &sample); more && sample.from < end && !error;
         more = epoch_stream_next(s, &sample)) {
        uint64_t from = sample.from > offset ? sample.from : offset, until = sample.to < end ? sample.to : end;
        const struct sample_part part = {list, sample.sample, from - sample.from, until - sample.from};
        if (from < until)
            error = run_add(g, &run, &part, to + (from - offset));
        done = until;
    }
    error = error ? error : run_fetch(g, &run);
    memset(to + (done - offset), 0, end - done); /* after the records of a tar */
    int late = await_fetches(g, 1);
    error = error ? error : late;
    return error || !epoch_stream_renames(s) ? error : rename_samples(g, s, offset, n, to);
}

static struct gathering *gathering_create(const struct stream_access *access)
{
    struct gathering *g = malloc(sizeof *g);
    if (!g)
        return NULL;
    memset(g, 0, offsetof(struct gathering, fetch));
    g->access = access;
    pthread_mutex_init(&g->lock, NULL);
    cond_init(&g->ended);
    return g;
}

/* Call it when no fetch runs. */
static void gathering_destroy(struct gathering *g)
{
    pthread_cond_destroy(&g->ended);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

int stream_read_file(const struct stream_access *access, uint32_t file, uint64_t offset, size_t n, char *to)
{
    struct gathering *g = gathering_create(access);
    if (!g)
        return -ENOMEM;
    int error = fetch_range(g, file, offset, n, to), late = await_fetches(g, 1);
    gathering_destroy(g);
    return error ? error : late;
}

int epoch_stream_read(const struct epoch_stream *stream, const struct stream_access *access, uint64_t offset, size_t n,
                      char *to)
{
    struct gathering *g = gathering_create(access);
    if (!g)
        return -ENOMEM;
    int error = gather(g, stream, offset, n, to);
    gathering_destroy(g);
    return error;
}
