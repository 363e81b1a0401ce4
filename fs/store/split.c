/* Threads: each half ends on any thread; the second one joins them. */
#include "fs/store/split.h"

#include "fs/base/log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct split;

struct half {
    struct store_read read; /* first */
    struct split *split;
    int error;
};

struct split {
    struct half half[2];
    struct store_read *whole;
    void (*joined)(void *user, struct store_read *whole, int error);
    void *user;
    atomic_int left;
};

static size_t answer_length(const struct answer *answer)
{
    size_t n = 0;
    for (int i = 0; i < answer->pieces; i++)
        n += answer->piece[i].iov_len;
    return n;
}

int answer_append(struct answer *to, struct answer *from, const struct span *span)
{
    enum { PIECES = sizeof to->piece / sizeof *to->piece, PINS = sizeof to->pin / sizeof *to->pin };
    bool fits = to->pieces + from->pieces <= PIECES && to->pins + from->pins <= PINS;
    if (!fits || answer_length(from) != span->length) {
        log_limited(LOG_LEVEL_ERROR, 1, "a layer answered %zu bytes instead of %u", answer_length(from), span->length);
        answer_release(from);
        return -EIO;
    }
    memcpy(to->piece + to->pieces, from->piece, (size_t)from->pieces * sizeof *from->piece);
    memcpy(to->pin + to->pins, from->pin, (size_t)from->pins * sizeof *from->pin);
    to->pieces += from->pieces;
    to->pins += from->pins;
    return 0;
}

static void join(struct split *s)
{
    struct store_read *whole = s->whole;
    int error = 0;
    for (int i = 0; i < 2; i++) {
        struct half *h = &s->half[i];
        if (!error)
            error = h->error;
        if (h->error)
            continue;
        if (error)
            answer_release(&h->read.answer);
        else
            error = answer_append(&whole->answer, &h->read.answer, &h->read.span);
        if (i == 0 || h->read.place > whole->place)
            whole->place = h->read.place;
    }
    if (error)
        answer_release(&whole->answer);
    s->joined(s->user, whole, error);
    free(s);
}

static void half_done(struct store_read *read, int error)
{
    struct half *h = (struct half *)read;
    h->error = error;
    if (atomic_fetch_sub(&h->split->left, 1) == 1)
        join(h->split);
}

int split_read(struct store_read *whole, int (*one)(void *user, struct store_read *half),
               void (*joined)(void *user, struct store_read *whole, int error), void *user)
{
    struct split *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    uint32_t first = (uint32_t)(EXTENT_BYTES - whole->span.offset % EXTENT_BYTES);
    *s = (struct split){.whole = whole, .joined = joined, .user = user, .left = 2};
    for (int i = 0; i < 2; i++)
        s->half[i] = (struct half){
            .read = {.span = {.file = whole->span.file, .length = first, .offset = whole->span.offset},
                     .done = half_done,
                     .began = whole->began,
                     .quiet = true},
            .split = s,
        };
    s->half[1].read.span.offset += first;
    s->half[1].read.span.length = whole->span.length - first;
    for (int i = 0; i < 2; i++) {
        int error = one(user, &s->half[i].read);
        if (error != -EINPROGRESS)
            half_done(&s->half[i].read, error);
    }
    return -EINPROGRESS;
}
