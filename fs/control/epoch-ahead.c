/* Blocks of streams: BLOCK_BYTES each, at multiples of BLOCK_BYTES.
 *
 *   state      becomes
 *   FREE       WANTED, when a reader comes near
 *   WANTED     FILLING, by a thread; FREE, when its reader arrives first and gathers the bytes itself
 *   FILLING    READY; FREE after an error: the reader will see the error itself
 *   READY      FREE, when it was read to its end, or when another block needs the buffer
 *
 * Threads: any number of readers, and our own, which gather blocks and drop pages; these start with the first block.
 * They wait for `work`; readers wait for `filled`. */
#include "fs/control/epoch-ahead.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    BLOCK_BYTES = 1 << 20,
    BLOCKS = 16,
    AHEAD_THREADS = 8,
    DEPTH_MOST = 8,
    DEPTH_LEAST = 2,
    CURSORS = 32,
    NEAR_BYTES = 2 << 20, /* READs of one reader arrive in any order within this range */
    KEEP_BYTES = 16 << 20,
    DROP_BYTES = 4 << 20, /* minimum to drop together */
    ACTIVE_S = 2,
    LOOK_AGAIN_MS = 50,
    DROP_MS = 1000,
};

enum block_state { BLOCK_FREE, BLOCK_WANTED, BLOCK_FILLING, BLOCK_READY };
struct ahead_block {
    enum block_state state;
    struct epoch_stream *stream; /* a reference, unless FREE */
    struct stream_access from;   /* the access of the READ that wanted it */
    uint64_t number;
    char *bytes; /* BLOCK_BYTES; NULL: not allocated yet */
    unsigned users;
    uint64_t asked; /* order of filling: the WANTED block with the lowest number is next */
    uint64_t used;  /* time of the last use */
};

/* The position of a reader. */
struct stream_cursor {
    struct epoch_stream *stream; /* a reference; NULL: unused */
    struct session *session;
    uint64_t ino;
    uint64_t next;    /* end of the furthest READ */
    unsigned depth;   /* number of blocks to read ahead; 0: not sequential */
    uint64_t failed;  /* 1 + the last block that could not be gathered; its samples are fetched one by one */
    uint64_t dropped; /* pages up to here were dropped, */
    uint64_t to_drop; /* up to here they are to be dropped */
    bool dropping;
    uint64_t used; /* time of the last use */
};

struct epoch_ahead {
    pthread_mutex_t lock;  /* guards all fields below */
    pthread_cond_t work;   /* signals threads: a block is WANTED, pages are to be dropped, or `stopping` */
    pthread_cond_t filled; /* signals readers: a block is no longer FILLING, or pages were dropped */
    struct ahead_block block[BLOCKS];
    struct stream_cursor cursor[CURSORS];
    uint64_t asked;
    pthread_t thread[AHEAD_THREADS];
    int threads;
    atomic_bool stopping;
};

int epoch_ahead_create(struct epoch_ahead **ahead)
{
    struct epoch_ahead *a = calloc(1, sizeof *a);
    if (!a)
        return -ENOMEM;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->work, NULL);
    cond_init(&a->filled);
    *ahead = a;
    return 0;
}

/* The caller holds the lock. */
static void block_free(struct ahead_block *b)
{
    epoch_stream_put(b->stream);
    b->stream = NULL;
    b->state = BLOCK_FREE;
}

static void cursor_free(struct stream_cursor *c)
{
    epoch_stream_put(c->stream);
    *c = (struct stream_cursor){0};
}

static bool any_drops(const struct epoch_ahead *a)
{
    for (int i = 0; i < CURSORS; i++)
        if (a->cursor[i].dropping)
            return true;
    return false;
}

void epoch_ahead_stop(struct epoch_ahead *a)
{
    uint64_t until = clock_now() + DROP_MS * MILLISECOND;
    LOCK_SCOPE(&a->lock);
    atomic_store(&a->stopping, true);
    pthread_cond_broadcast(&a->work);
    while (any_drops(a) && cond_wait_until(&a->filled, &a->lock, until))
        ;
}

void epoch_ahead_destroy(struct epoch_ahead *a)
{
    if (!a)
        return;
    epoch_ahead_stop(a);
    threads_join(a->thread, a->threads);
    for (int i = 0; i < BLOCKS; i++) {
        block_free(&a->block[i]);
        if (a->block[i].bytes)
            munmap(a->block[i].bytes, BLOCK_BYTES);
    }
    for (int i = 0; i < CURSORS; i++)
        cursor_free(&a->cursor[i]);
    pthread_cond_destroy(&a->filled);
    pthread_cond_destroy(&a->work);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

bool epoch_ahead_forget(struct epoch_ahead *a, bool all)
{
    uint64_t then = clock_now() - ACTIVE_S * SECOND;
    bool any = false;
    LOCK_SCOPE(&a->lock);
    for (int i = 0; i < CURSORS; i++)
        if (a->cursor[i].stream && !a->cursor[i].dropping && a->cursor[i].used < then) {
            cursor_free(&a->cursor[i]);
            any = true;
        }
    for (int i = 0; i < BLOCKS; i++) {
        struct ahead_block *b = &a->block[i];
        if (b->users > 0 || b->state == BLOCK_FILLING || !b->bytes || (!all && b->used >= then))
            continue;
        any |= b->stream != NULL;
        block_free(b);
        munmap(b->bytes, BLOCK_BYTES);
        b->bytes = NULL;
    }
    return any;
}

/* --- blocks --- */

static struct ahead_block *block_find(struct epoch_ahead *a, const struct epoch_stream *stream, uint64_t number)
{
    for (int i = 0; i < BLOCKS; i++)
        if (a->block[i].state != BLOCK_FREE && a->block[i].stream == stream && a->block[i].number == number)
            return &a->block[i];
    return NULL;
}

/* A free block, or one that its reader has probably left. */
static struct ahead_block *block_place(struct epoch_ahead *a, uint64_t now)
{
    struct ahead_block *oldest = NULL;
    for (int i = 0; i < BLOCKS; i++) {
        struct ahead_block *b = &a->block[i];
        if (b->state == BLOCK_FREE && b->users == 0)
            return b;
        if (b->state == BLOCK_READY && b->users == 0 && now > b->used + ACTIVE_S * SECOND &&
            (!oldest || b->used < oldest->used))
            oldest = b;
    }
    if (oldest)
        block_free(oldest);
    return oldest;
}

static bool block_want(struct epoch_ahead *a, const struct ahead_read *r, uint64_t number)
{
    uint64_t now = clock_now();
    struct ahead_block *b = block_place(a, now);
    if (b && !b->bytes) {
        void *bytes = mmap(NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        b->bytes = bytes == MAP_FAILED ? NULL : bytes;
    }
    if (!b || !b->bytes)
        return false;
    b->state = BLOCK_WANTED;
    b->stream = epoch_stream_get(r->stream);
    b->from = r->access;
    b->number = number;
    b->asked = ++a->asked;
    b->used = now;
    pthread_cond_signal(&a->work);
    return true;
}

static size_t block_length(const struct ahead_block *b)
{
    uint64_t left = epoch_stream_length(b->stream) - b->number * BLOCK_BYTES;
    return left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
}

/* --- readers --- */

/* Few blocks at first: the threads that gather them would compete with the reader's first READs for the processors. */
static void cursor_deepen(struct stream_cursor *c, uint64_t end)
{
    if (c->depth == 0)
        c->depth = DEPTH_LEAST;
    else if (end / BLOCK_BYTES > c->next / BLOCK_BYTES && c->depth < DEPTH_MOST)
        c->depth *= 2;
}

/* The cursor of the reader at this position. A READ at the start of the stream, or next to another READ, is part of a
 * sequential read. */
static struct stream_cursor *cursor_move(struct epoch_ahead *a, const struct ahead_read *r)
{
    struct stream_cursor *oldest = &a->cursor[0], *c = NULL;
    uint64_t end = r->offset + r->n;
    for (int i = 0; i < CURSORS && !c; i++) {
        struct stream_cursor *one = &a->cursor[i];
        if (one->stream == r->stream && r->offset + NEAR_BYTES >= one->next && r->offset <= one->next + NEAR_BYTES)
            c = one;
        else if (!one->dropping && (oldest->dropping || one->used < oldest->used))
            oldest = one;
    }
    bool there = c != NULL;
    if (!there) {
        if (oldest->dropping)
            return NULL;
        cursor_free(c = oldest);
        c->stream = epoch_stream_get(r->stream);
        c->dropped = c->to_drop = r->offset;
        c->session = r->session;
        c->ino = r->ino;
    }
    if (there || r->offset == 0)
        cursor_deepen(c, end);
    c->next = end > c->next ? end : c->next;
    c->used = clock_now();
    return c;
}

/* Current readers share the blocks. */
static unsigned depth_now(const struct epoch_ahead *a, const struct stream_cursor *c)
{
    uint64_t now = clock_now();
    unsigned active = 0;
    for (int i = 0; i < CURSORS; i++)
        active += a->cursor[i].stream && a->cursor[i].depth > 0 && now < a->cursor[i].used + ACTIVE_S * SECOND;
    unsigned depth = BLOCKS / (active ? active : 1);
    return depth > c->depth ? c->depth : depth < DEPTH_LEAST ? DEPTH_LEAST : depth;
}

static void want_drop(struct epoch_ahead *a, struct stream_cursor *c)
{
    if (c->next < KEEP_BYTES || c->dropping)
        return;
    uint64_t to = (c->next - KEEP_BYTES) / BLOCK_BYTES * BLOCK_BYTES;
    if (to < c->dropped + DROP_BYTES)
        return;
    c->to_drop = to;
    pthread_cond_signal(&a->work);
}

static void *ahead_main(void *argument);

void epoch_ahead_note(struct epoch_ahead *a, const struct ahead_read *r)
{
    LOCK_SCOPE(&a->lock);
    struct stream_cursor *c = cursor_move(a, r);
    if (c && c->depth > 0 && !atomic_load(&a->stopping)) {
        uint64_t number = c->next / BLOCK_BYTES, end = number + depth_now(a, c);
        for (; number < end && number * BLOCK_BYTES < epoch_stream_length(r->stream); number++)
            if (c->failed != number + 1 && !block_find(a, r->stream, number) && !block_want(a, r, number))
                break;
        want_drop(a, c);
        if (a->threads == 0)
            a->threads = threads_start(a->thread, AHEAD_THREADS, "stream", ahead_main, a);
    }
}

/* 0; -EAGAIN: the block is missing; -EBUSY: it is being gathered. */
static int block_pin(struct epoch_ahead *a, const struct ahead_read *r, uint64_t number, int *place)
{
    struct ahead_block *b = block_find(a, r->stream, number);
    if (b && b->state == BLOCK_WANTED)
        block_free(b); /* this READ will gather it sooner */
    if (!b || b->state == BLOCK_FREE)
        return -EAGAIN;
    if (b->state == BLOCK_FILLING)
        return -EBUSY;
    b->users++;
    b->used = clock_now();
    *place = (int)(b - a->block);
    return 0;
}

static void block_unpin(struct ahead_block *b, const struct ahead_read *r)
{
    b->users--;
    if (b->users == 0 && b->state == BLOCK_READY && r->offset + r->n >= b->number * BLOCK_BYTES + block_length(b))
        block_free(b);
}

static int pin_all(struct epoch_ahead *a, const struct ahead_read *r, struct ahead_piece *piece)
{
    uint64_t first = r->offset / BLOCK_BYTES, last = (r->offset + r->n - 1) / BLOCK_BYTES;
    *piece = (struct ahead_piece){.block = {-1, -1}};
    if (last > first + 1)
        return -EAGAIN;
    int error = block_pin(a, r, first, &piece->block[0]);
    if (!error && last > first)
        error = block_pin(a, r, last, &piece->block[1]);
    if (error && piece->block[0] >= 0) {
        a->block[piece->block[0]].users--;
        piece->block[0] = -1;
    }
    if (error)
        return error;
    size_t at = (size_t)(r->offset - first * BLOCK_BYTES);
    piece->bytes[0] = a->block[piece->block[0]].bytes + at;
    piece->n[0] = r->n < BLOCK_BYTES - at ? r->n : BLOCK_BYTES - at;
    piece->bytes[1] = last > first ? a->block[piece->block[1]].bytes : NULL;
    piece->n[1] = r->n - piece->n[0];
    return 0;
}

int epoch_ahead_get(struct epoch_ahead *a, const struct ahead_read *r, bool wait, struct ahead_piece *piece)
{
    pthread_mutex_lock(&a->lock);
    int error = r->n ? pin_all(a, r, piece) : -EAGAIN;
    while (error == -EBUSY && wait) {
        if (!cond_wait_until(&a->filled, &a->lock, clock_now() + LOOK_AGAIN_MS * MILLISECOND)) {
            pthread_mutex_unlock(&a->lock);
            bool gone = r->access.gave_up(r->access.user);
            pthread_mutex_lock(&a->lock);
            if (gone) {
                error = -EINTR;
                break;
            }
        }
        error = pin_all(a, r, piece);
    }
    pthread_mutex_unlock(&a->lock);
    return error == -EBUSY ? -EAGAIN : error;
}

void epoch_ahead_put(struct epoch_ahead *a, const struct ahead_read *r, const struct ahead_piece *piece)
{
    LOCK_SCOPE(&a->lock);
    for (int i = 0; i < 2; i++)
        if (piece->block[i] >= 0)
            block_unpin(&a->block[piece->block[i]], r);
}

/* --- the threads --- */

static bool ahead_stops(void *user)
{
    struct epoch_ahead *a = user;
    return atomic_load(&a->stopping);
}

static struct ahead_block *take_wanted(struct epoch_ahead *a)
{
    struct ahead_block *first = NULL;
    for (int i = 0; i < BLOCKS; i++)
        if (a->block[i].state == BLOCK_WANTED && (!first || a->block[i].asked < first->asked))
            first = &a->block[i];
    return first;
}

static void note_failed(struct epoch_ahead *a, const struct ahead_block *b)
{
    for (int i = 0; i < CURSORS; i++)
        if (a->cursor[i].stream == b->stream)
            a->cursor[i].failed = b->number + 1;
}

/* Releases the lock meanwhile. */
static void fill_block(struct epoch_ahead *a, struct ahead_block *b)
{
    b->state = BLOCK_FILLING;
    size_t n = block_length(b);
    pthread_mutex_unlock(&a->lock);
    const struct stream_access access = {b->from.store, ahead_stops, a, b->from.cuts};
    int error = epoch_stream_read(b->stream, &access, b->number * BLOCK_BYTES, n, b->bytes);
    pthread_mutex_lock(&a->lock);
    if (error) {
        note_failed(a, b);
        block_free(b);
    } else {
        b->state = BLOCK_READY;
    }
    b->used = clock_now();
    pthread_cond_broadcast(&a->filled);
}

static struct stream_cursor *take_drop(struct epoch_ahead *a)
{
    for (int i = 0; i < CURSORS; i++)
        if (a->cursor[i].stream && !a->cursor[i].dropping && a->cursor[i].to_drop > a->cursor[i].dropped)
            return &a->cursor[i];
    return NULL;
}

/* Releases the lock: the kernel waits for READs of these pages, which other threads answer. */
static void drop_pages(struct epoch_ahead *a, struct stream_cursor *c)
{
    uint64_t from = c->dropped, to = c->to_drop;
    c->dropping = true;
    pthread_mutex_unlock(&a->lock);
    if (c->session)
        session_drop_pages(c->session, c->ino, from, to - from);
    pthread_mutex_lock(&a->lock);
    c->dropping = false;
    c->dropped = to;
    pthread_cond_broadcast(&a->filled);
}

static void *ahead_main(void *argument)
{
    struct epoch_ahead *a = argument;
    LOCK_SCOPE(&a->lock);
    while (!atomic_load(&a->stopping)) {
        struct ahead_block *b = take_wanted(a);
        struct stream_cursor *c = b ? NULL : take_drop(a);
        if (b)
            fill_block(a, b);
        else if (c)
            drop_pages(a, c);
        else
            pthread_cond_wait(&a->work, &a->lock);
    }
    return NULL;
}
