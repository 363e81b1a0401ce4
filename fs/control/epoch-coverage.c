/* The lists that are read as streams, and their reports. */
#include "fs/control/epoch-coverage.h"

#include "fs/control/control-private.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NEAR_BYTES = 2 << 20 }; /* the kernel's READs of one reader arrive in any order within this range */

/* --- what was read --- */

static uint64_t read_of(const struct feed_stream *l)
{
    uint64_t read = 0;
    for (int i = 0; i < FEED_WORKERS; i++)
        read += l->read[i];
    if (l->told)
        read = l->told - 1;
    else if (l->failed && read == l->samples && read > 0)
        read--; /* a read failed, so at least one sample was not read */
    return read < l->samples ? read : l->samples;
}

/* How many samples, from the first one on, have been read. */
static uint64_t reached_by(const struct epoch_stream *s, uint64_t before, uint64_t offset, size_t n)
{
    struct stream_sample sample;
    if (!epoch_stream_find(s, offset, &sample) || sample.from > epoch_stream_place(s, before) + NEAR_BYTES)
        return before;
    uint64_t now = epoch_stream_find(s, offset + n, &sample) ? sample.number : epoch_stream_count(s);
    return now > before ? now : before;
}

/* --- reports --- */

static void publish_list(struct feed *feed, struct feed_stream *l)
{
    struct feed_report *report = malloc(sizeof *report);
    if (!report)
        return;
    if (l->report == 0 || atomic_load(&feed->reports) >= l->report + FEED_REPORTS)
        l->report = atomic_fetch_add(&feed->reports, 1) + 1;
    *report = (struct feed_report){.rank = l->rank,
                                   .flags = (l->ended ? FEED_ENDED : 0) | (l->stopped ? FEED_STOPPED : 0),
                                   .loaders = 1,
                                   .number = l->number,
                                   .epoch = l->epoch,
                                   .began = l->began,
                                   .ended = l->last,
                                   .asked = l->asked,
                                   .samples = l->samples,
                                   .bytes = l->bytes,
                                   .read = read_of(l)};
    report->unsure = report->samples - report->read;
    feed_report_put(feed, (unsigned)((l->report - 1) % FEED_REPORTS), report);
    l->dirty = 0;
    free(report);
}

static void end_list(struct feed *feed, struct feed_stream *l, bool stopped)
{
    l->ended = atomic_fetch_add(&feed->numbers, 1) + 1;
    l->stopped = stopped;
    publish_list(feed, l);
}

/* --- lists --- */

static bool is_meant(const struct feed_stream *l, const struct feed_end *of, uint32_t workers)
{
    return l->asked && l->epoch == of->epoch && l->rank == of->rank && (!workers || l->workers == workers) &&
           (!of->digest || memcmp(l->digest, of->digest->byte, sizeof l->digest) == 0);
}

/* The list that began last. `workers` 0: with any number of workers. */
static struct feed_stream *find_list(struct feed *feed, const struct feed_end *of, uint32_t workers)
{
    struct feed_stream *last = NULL;
    for (int i = 0; i < FEED_STREAMS; i++) {
        struct feed_stream *l = &feed->stream[i];
        if (is_meant(l, of, workers) && (!last || l->asked > last->asked))
            last = l;
    }
    return last;
}

/* A free place; else that of an ended list; else of any: the one that was read least recently. */
static struct feed_stream *find_room(struct feed *feed)
{
    struct feed_stream *oldest = &feed->stream[0];
    for (int i = 0; i < FEED_STREAMS; i++) {
        struct feed_stream *l = &feed->stream[i];
        if (!l->asked)
            return l;
        bool worse = (l->ended == 0) == (oldest->ended == 0) ? l->last < oldest->last : l->ended != 0;
        oldest = worse ? l : oldest;
    }
    return oldest;
}

/* The number of this plan's last lists. 0: this rank already has one of them, so it gets a new number. */
static uint64_t number_of(const struct feed *feed, const struct feed_stream *begun)
{
    uint64_t last = 0;
    bool has = false;
    for (int i = 0; i < FEED_STREAMS; i++) {
        const struct feed_stream *l = &feed->stream[i];
        if (l == begun || !l->asked || l->epoch != begun->epoch ||
            memcmp(l->digest, begun->digest, sizeof l->digest) != 0 || l->number < last)
            continue;
        has = l->rank == begun->rank || (has && l->number == last);
        last = l->number;
    }
    return has ? 0 : last;
}

static struct feed_stream *begin_list(struct feed *feed, const struct stream_identity *of)
{
    struct feed_stream *l = find_room(feed);
    *l = (struct feed_stream){.epoch = of->epoch,
                              .samples = of->samples,
                              .bytes = of->bytes,
                              .rank = of->rank,
                              .workers = of->workers,
                              .began = clock_realtime(),
                              .last = clock_realtime()};
    memcpy(l->digest, of->digest.byte, sizeof l->digest);
    uint64_t asked = atomic_fetch_add(&feed->numbers, 1) + 1, number = number_of(feed, l);
    l->number = number ? number : asked;
    l->asked = asked;
    publish_list(feed, l);
    return l;
}

/* A final report stays as it is: who reports after it reads the plan again, from the kernel's page cache. */
static struct feed_stream *begin_again(struct feed *feed, const struct feed_stream *l)
{
    struct stream_identity of = {
        .epoch = l->epoch, .samples = l->samples, .bytes = l->bytes, .rank = l->rank, .workers = l->workers};
    memcpy(of.digest.byte, l->digest, sizeof l->digest);
    return begin_list(feed, &of);
}

/* The list that a loader means. -ENOENT; -EEXIST: several are in progress, of different plans. */
static int find_told(struct feed *feed, const struct feed_end *of, struct feed_stream **found)
{
    *found = feed ? find_list(feed, of, 0) : NULL;
    if (!*found)
        return -ENOENT;
    for (int i = 0; i < FEED_STREAMS; i++) {
        const struct feed_stream *l = &feed->stream[i];
        if (is_meant(l, of, 0) && !l->ended && memcmp(l->digest, (*found)->digest, sizeof l->digest) != 0)
            return -EEXIST;
    }
    if ((*found)->final)
        *found = begin_again(feed, *found);
    return 0;
}

/* Needs feed_lock. NULL: it is not known how the list was read up to `offset`. */
static struct feed_stream *list_of(struct feed *feed, const struct stream_identity *of, uint64_t offset)
{
    const struct feed_end end = {.epoch = of->epoch, .rank = of->rank, .digest = &of->digest};
    struct feed_stream *l = find_list(feed, &end, of->workers);
    if (l && !l->ended)
        return l;
    return offset == 0 ? begin_list(feed, of) : NULL;
}

void epoch_coverage_read(struct control *control, const struct epoch_stream *s, uint64_t offset, size_t n, int error)
{
    const struct stream_identity *of = epoch_stream_identity(s);
    struct feed *feed = control->config.feed;
    if (!feed || of->worker >= FEED_WORKERS || of->samples == 0)
        return;
    LOCK_SCOPE(&control->feed_lock);
    struct feed_stream *l = list_of(feed, of, offset);
    if (l) {
        uint32_t *read = &l->read[of->worker];
        *read = error ? *read : (uint32_t)reached_by(s, *read, offset, n);
        l->failed |= error != 0;
        l->last = clock_realtime();
        l->dirty = 1;
        if (read_of(l) == l->samples)
            end_list(feed, l, false);
    }
}

int epoch_coverage_told(struct control *control, const struct feed_end *at, uint64_t read)
{
    LOCK_SCOPE(&control->feed_lock);
    struct feed_stream *l;
    int error = find_told(control->config.feed, at, &l);
    if (error)
        return error;
    l->told = 1 + (read < l->samples ? read : l->samples);
    l->last = clock_realtime();
    l->dirty = 1;
    return 0;
}

int epoch_coverage_end(struct control *control, struct feed_end *end)
{
    LOCK_SCOPE(&control->feed_lock);
    struct feed_stream *l;
    int error = find_told(control->config.feed, end, &l);
    if (error)
        return error;
    end_list(control->config.feed, l, end->stopped);
    l->final = 1;
    end->number = l->number;
    end->asked = l->asked;
    end->ended = l->ended;
    return 0;
}

void epoch_coverage_publish(struct control *control)
{
    struct feed *feed = control->config.feed;
    if (!feed)
        return;
    LOCK_SCOPE(&control->feed_lock);
    for (int i = 0; i < FEED_STREAMS; i++)
        if (feed->stream[i].asked && feed->stream[i].dirty)
            publish_list(feed, &feed->stream[i]);
}
