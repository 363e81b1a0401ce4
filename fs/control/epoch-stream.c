/* The table of a stream. */
#include "fs/control/epoch-stream.h"

#include "fs/base/array.h"
#include "fs/base/cleanup.h"
#include "fs/base/scratch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MARK_EVERY_SAMPLES = 16, TAR_END = 1024, FETCH_AHEAD = 16 };

struct epoch_stream {
    atomic_int references;
    uint64_t serial;
    struct samples *list;
    struct scratch memory;
    const uint64_t *mark;   /* where sample i × MARK_EVERY_SAMPLES begins */
    const uint32_t *sample; /* follows the marks */
    uint64_t count;
    uint64_t end; /* of the last sample */
    bool renames;
    struct stream_identity of;
    struct charge charge;
};

static uint64_t sample_streamed(const struct samples *list, uint32_t sample)
{
    const struct record *record = samples_records(list);
    return record ? record_streamed(&record[sample]) : samples_length(list, sample);
}

static int refuse_length(struct str *why)
{
    return str_fail(why, -EFBIG, "the samples together are longer than a file can be");
}

/* Where the sample after this one begins; false: no file can be that long. */
static bool stream_advance(const struct samples *list, uint32_t sample, uint64_t *at)
{
    uint64_t length = sample_streamed(list, sample);
    if (length > INT64_MAX - TAR_END - *at)
        return false;
    *at += length;
    return true;
}

int epoch_stream_spans(const struct samples *list, const uint32_t *sample, uint64_t n, struct str *text,
                       struct str *why)
{
    uint64_t at = 0;
    char *to = str_reserve(text, (n + 1) * sizeof at);
    if (!to)
        return str_no_memory(why);
    memcpy(to, &at, sizeof at);
    for (uint64_t i = 0; i < n; i++) {
        if (!stream_advance(list, sample[i], &at))
            return refuse_length(why);
        memcpy(to + (i + 1) * sizeof at, &at, sizeof at);
    }
    text->length += (n + 1) * sizeof at;
    str_add(text, "", 0);
    return 0;
}

/* --- a stream --- */

static int stream_fill(struct epoch_stream *s, const uint32_t *sample, struct str *why)
{
    uint64_t marks = s->count / MARK_EVERY_SAMPLES + 1;
    uint64_t *mark = s->memory.bytes;
    s->mark = mark;
    s->sample = (const void *)(mark + marks);
    memcpy(mark + marks, sample, s->count * sizeof *sample);
    for (uint64_t i = 0; i < s->count; i++) {
        if (i % MARK_EVERY_SAMPLES == 0)
            mark[i / MARK_EVERY_SAMPLES] = s->end;
        if (!stream_advance(s->list, sample[i], &s->end))
            return refuse_length(why);
    }
    if (s->count % MARK_EVERY_SAMPLES == 0)
        mark[marks - 1] = s->end;
    return 0;
}

/* Readers would merge neighbouring records with the same key, or fail. */
static int check_keys(const struct stream_terms *t, struct str *why)
{
    const struct record_traits *traits = samples_traits(t->list);
    static const char remedy[] = ": `keys=unique` puts the position in the stream before each key";
    if (t->unique || traits->format != RECORDS_TAR)
        return 0;
    if (!traits->keyed)
        str_addf(why, "the list has no keys, so records in it may share one%s", remedy);
    else if (traits->first != traits->second)
        str_addf(why, "records %" PRIu32 " and %" PRIu32 " of the list have the same key%s", traits->first,
                 traits->second, remedy);
    for (uint64_t i = 1; i < t->n && !why->length; i++)
        if (t->sample[i] == t->sample[i - 1])
            str_addf(why, "record %" PRIu32 " follows itself%s", t->sample[i], remedy);
    return why->length ? -EINVAL : 0;
}

/* Scratch memory is whole pages. */
static uint64_t memory_of(uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    return sizeof(struct epoch_stream) + (bytes + page - 1) / page * page;
}

int epoch_stream_create(const struct stream_terms *t, struct charge *charge, struct epoch_stream **stream,
                        struct str *why)
{
    uint64_t bytes = (t->n / MARK_EVERY_SAMPLES + 1) * sizeof(uint64_t) + t->n * sizeof *t->sample;
    struct epoch_stream *s = calloc(1, sizeof *s);
    if (!s)
        return str_no_memory(why);
    static _Atomic uint64_t streams;
    atomic_init(&s->references, 1);
    s->serial = atomic_fetch_add(&streams, 1);
    s->list = samples_get(t->list);
    s->count = t->n;
    s->of = t->of;
    s->renames = t->unique && samples_traits(t->list)->format == RECORDS_TAR;
    int error = check_keys(t, why);
    if (!error)
        error = charge_add(charge, memory_of(bytes), why);
    if (!error) {
        error = scratch_make(t->directory, bytes, &s->memory);
        if (error)
            str_addf(why, "memory for the stream: %s", strerror(-error));
    }
    if (!error)
        error = stream_fill(s, t->sample, why);
    if (error) {
        epoch_stream_put(s);
        return error;
    }
    charge_keep(charge);
    s->charge = charge_take(charge);
    *stream = s;
    return 0;
}

struct epoch_stream *epoch_stream_get(struct epoch_stream *s)
{
    atomic_fetch_add(&s->references, 1);
    return s;
}

void epoch_stream_put(struct epoch_stream *s)
{
    if (!s || atomic_fetch_sub(&s->references, 1) > 1)
        return;
    samples_put(s->list);
    scratch_fini(&s->memory);
    charge_fini(&s->charge);
    free(s);
}

uint64_t epoch_stream_length(const struct epoch_stream *s)
{
    return s->end + (samples_traits(s->list)->format == RECORDS_TAR ? TAR_END : 0);
}

uint64_t epoch_stream_memory(const struct epoch_stream *s)
{
    return memory_of(s->memory.length);
}

uint64_t epoch_stream_count(const struct epoch_stream *s)
{
    return s->count;
}

uint64_t epoch_stream_serial(const struct epoch_stream *s)
{
    return s->serial;
}

const struct stream_identity *epoch_stream_identity(const struct epoch_stream *s)
{
    return &s->of;
}

const struct samples *epoch_stream_list(const struct epoch_stream *s)
{
    return s->list;
}

bool epoch_stream_renames(const struct epoch_stream *s)
{
    return s->renames;
}

/* Sample `number`, which begins at `from`. */
static bool stream_sample_at(const struct epoch_stream *s, uint64_t number, uint64_t from, struct stream_sample *found)
{
    if (number >= s->count)
        return false;
    *found = (struct stream_sample){.number = number, .sample = s->sample[number], .from = from};
    found->to = from + sample_streamed(s->list, found->sample);
    return true;
}

/* Prefetch: in a shuffled stream, each record of the list is elsewhere in memory. */
static void fetch_record(const struct epoch_stream *s, uint64_t number)
{
    const struct record *record = samples_records(s->list);
    if (record && number < s->count)
        __builtin_prefetch(&record[s->sample[number]]);
}

bool epoch_stream_next(const struct epoch_stream *s, struct stream_sample *sample)
{
    fetch_record(s, sample->number + FETCH_AHEAD);
    return stream_sample_at(s, sample->number + 1, sample->to, sample);
}

bool epoch_stream_find(const struct epoch_stream *s, uint64_t offset, struct stream_sample *found)
{
    if (offset >= s->end)
        return false;
    uint64_t mark = bisect(i, s->count / MARK_EVERY_SAMPLES, s->mark[i + 1] <= offset); /* at or before the offset */
    bool found_one = stream_sample_at(s, mark * MARK_EVERY_SAMPLES, s->mark[mark], found);
    while (found_one && found->to <= offset)
        found_one = epoch_stream_next(s, found);
    return found_one;
}

uint64_t epoch_stream_place(const struct epoch_stream *s, uint64_t number)
{
    if (number >= s->count)
        return s->end;
    uint64_t mark = number / MARK_EVERY_SAMPLES, at = s->mark[mark];
    for (uint64_t i = mark * MARK_EVERY_SAMPLES; i < number; i++)
        at += sample_streamed(s->list, s->sample[i]);
    return at;
}
