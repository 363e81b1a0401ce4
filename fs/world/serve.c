/* Answering other nodes.
 *
 * Threads: ring threads take what is asked and what was sent; the loader's threads end the loads. What the tiers hold
 * is copied into a slot at once. A question that needs more is a job:
 *
 *   waits for a slot ──▶ answered from a tier, or ──▶ is loaded ──▶ answered, after it waited for a slot again
 *
 * What is fed over there yields as in fetch.c, and is loaded as what is fed here.
 *
 * What no tier keeps is answered out of the load's own memory: of jobs that wait for slots with such memory there are
 * at most MOST_KEPT bytes, the others load again. A job waits for a slot no longer than peer_timeout: who asked has the
 * source, too. */
#include "fs/world/serve.h"

#include "fs/base/clock.h"
#include "fs/store/loads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_KEPT = 16 << 20,
    MOST_LOADS = 3,
    ASKER_SLOTS = RING_OUT / 4,
    FED_SLOTS = ASKER_SLOTS * 3 / 4, /* nothing fed gets one where the asker has more, */
    KEPT_FREE = RING_OUT / 4,        /* or fewer are free */
    OVERTAKE_MS = 50,                /* what waits longer is overtaken no more */
};
#define NO_SLOT UINT32_MAX
_Static_assert((int)RING_SENT_BELL <= (int)FED_SLOTS, "who waits for a slot hears of one that is free");

struct peer_question {
    uint64_t token;
    uint32_t node, file, value, count, flags;
};

struct serve_job {
    struct peer_question question;
    struct serves *serves; /* with a reference to its link */
    struct store_read read;
    bool loaded; /* read.answer has it, because no tier does */
    int loads;
    uint64_t since; /* when it began to wait for a slot */
    bool told;      /* that it waits */
    TAILQ_ENTRY(serve_job) same_queue;
};
TAILQ_HEAD(serve_queue, serve_job);

struct serves {
    struct link *link;
    struct self *self;
    uint32_t nodes, me;

    pthread_mutex_t lock; /* all below */
    bool over;
    struct world *world; /* by whose layout it is told what is stored; NULL: by none yet */
    int free;
    uint32_t free_slot[RING_OUT];
    uint32_t asker[RING_OUT]; /* whose answer is in the slot; NODES_MOST: nobody's */
    bool sending[RING_OUT];
    struct serve_queue pending; /* wait for a slot that they may have, in the order in which they came */
    struct serve_queue fed;     /* so do these */
    int yields;                 /* slots that others got since one was fed; up to MOST_YIELDS */
    size_t kept;                /* bytes of answers among all of them that no tier has */
};

int serves_create(struct link *link, struct self *self, struct world *world, struct serves **serves)
{
    struct serves *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->link = link;
    s->self = self;
    s->nodes = world->nodes;
    s->me = world->me;
    pthread_mutex_init(&s->lock, NULL);
    TAILQ_INIT(&s->pending);
    TAILQ_INIT(&s->fed);
    for (uint32_t slot = 0; slot < RING_OUT; slot++) {
        s->asker[slot] = NODES_MOST;
        s->free_slot[s->free++] = RING_OUT - 1 - slot;
    }
    *serves = s;
    return 0;
}

void serves_destroy(struct serves *s)
{
    if (!s)
        return;
    world_put(s->world);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void serve_turn(struct serves *s, struct world *world)
{
    pthread_mutex_lock(&s->lock);
    struct world *before = s->world;
    s->world = world_get(world);
    pthread_mutex_unlock(&s->lock);
    world_put(before);
}

/* The slots, with the lock. */

static bool may_have_slot(const struct serves *s, const struct peer_question *q)
{
    bool yields = q->flags & FETCH_FED && s->yields < MOST_YIELDS;
    int has = 0;
    for (uint32_t slot = 0; slot < RING_OUT; slot++)
        has += s->asker[slot] == q->node;
    return yields ? has < FED_SLOTS && s->free >= KEPT_FREE : has < ASKER_SLOTS;
}

static void take_slot(struct serves *s, uint32_t slot, const struct peer_question *q)
{
    s->asker[slot] = q->node;
    s->yields = q->flags & FETCH_FED ? 0 : s->yields + (s->yields < MOST_YIELDS);
}

static uint32_t pop_slot(struct serves *s, const struct peer_question *q)
{
    if (s->over || !s->free || !may_have_slot(s, q))
        return NO_SLOT;
    uint32_t slot = s->free_slot[--s->free];
    take_slot(s, slot, q);
    return slot;
}

/* Replies. */

static void reply_status(struct serves *s, const struct peer_question *q, int status)
{
    struct ring_message m = {.kind = RING_REPLY, .node = q->node, .token = q->token, .status = status};
    link_send(s->link, &m);
}

/* A payload that is being put together. */
struct slot_filling {
    char *slot;
    uint32_t length[RING_VALUES];
};

static void put_value(void *user, uint32_t i, const void *bytes, uint32_t length)
{
    struct slot_filling *f = user;
    memcpy(f->slot + payload_begin(f->length, i), bytes, length);
    f->length[i] = length;
}

static void send_bytes(struct serves *s, const struct peer_question *q, uint32_t slot, size_t length)
{
    struct ring_message m = {
        .kind = RING_REPLY,
        .node = q->node,
        .token = q->token,
        .slot = RING_IN + slot,
        .length = (uint32_t)length,
    };
    pthread_mutex_lock(&s->lock);
    s->sending[slot] = true;
    pthread_mutex_unlock(&s->lock);
    link_send(s->link, &m);
}

static uint64_t question_bytes(const struct serves *s, const struct peer_question *q)
{
    uint64_t size = catalog_file(s->self->config.catalog, q->file).size;
    uint64_t begin = (uint64_t)q->value * VALUE_BYTES, end = begin + (uint64_t)q->count * VALUE_BYTES;
    return (end < size ? end : size) - begin;
}

static void send_slot(struct serves *s, const struct peer_question *q, uint32_t slot, struct slot_filling *f)
{
    payload_finish(f->slot, q->file, q->value, q->count, f->length);
    send_bytes(s, q, slot, payload_begin(f->length, q->count));
    if (!(q->flags & FETCH_BEFORE))
        return;
    atomic_fetch_add(&s->self->sent_samples, q->value == 0);
    atomic_fetch_add(&s->self->sent_bytes, question_bytes(s, q));
}

/* Of extents that this node owns, whether they are stored. */
static void send_stored(struct serves *s, const struct peer_question *q, uint32_t slot)
{
    const struct self *self = s->self;
    uint64_t first = (uint64_t)q->value << 32 | q->file;
    pthread_mutex_lock(&s->lock);
    struct world *w = world_get(s->world);
    pthread_mutex_unlock(&s->lock);
    struct payload_stored *p =
        payload_stored_begin(ring_slot(&s->link->ring, RING_IN + slot), first, q->count, w ? w->last.k : UINT64_MAX);
    for (uint32_t i = 0; w && i < q->count; i++) {
        uint64_t from, to;
        if (!world_keeps(w, first + i))
            continue;
        uint32_t file = extents_file(self->extents, first + i, &from, &to);
        if (store_is_stored(self->store, file, from, to))
            p->word[i / 64] |= UINT64_C(1) << i % 64;
    }
    world_put(w);
    send_bytes(s, q, slot, payload_stored_length(q->count));
}

/* A piece of a layout. */
static ssize_t read_layout(const struct self *self, const struct blob_question *q, void *to, uint64_t *length)
{
    struct layout *layout;
    int error = shelf_find_key(self->shelf, self->config.catalog, q->key, &layout);
    if (error)
        return error;
    size_t n = layout_bytes(layout, q->offset, to, BLOB_PIECE, length);
    layout_close(layout);
    return (ssize_t)n;
}

/* What this server keeps beside samples. */
static void send_blob(struct serves *s, const struct peer_question *q, uint32_t slot)
{
    const struct peers_config *c = &s->self->config;
    uint64_t key = (uint64_t)q->value << 32 | q->file, length = 0;
    uint32_t piece = q->count - 1;
    struct payload_blob *p = payload_blob_begin(ring_slot(&s->link->ring, RING_IN + slot), key, piece, 0);
    const struct blob_question blob = {q->node, key, (uint64_t)piece * BLOB_PIECE};
    ssize_t n = c->blob ? c->blob(c->user, &blob, p->byte, BLOB_PIECE, &length) : -ENOENT;
    if (n < 0)
        n = read_layout(s->self, &blob, p->byte, &length);
    p->length = n >= 0 ? length : 0;
    send_bytes(s, q, slot, sizeof *p + (n > 0 ? (size_t)n : 0));
}

/* -ENOENT: the tiers have not all of it; the slot is still the caller's. */
static int send_held(struct serves *s, const struct peer_question *q, uint32_t slot)
{
    if (q->flags == FETCH_STORED) {
        send_stored(s, q, slot);
        return 0;
    }
    if (q->flags == FETCH_BLOB) {
        send_blob(s, q, slot);
        return 0;
    }
    struct slot_filling f = {.slot = ring_slot(&s->link->ring, RING_IN + slot)};
    int error = store_stored(s->self->store, q->file, q->value, q->count, put_value, &f);
    if (!error)
        send_slot(s, q, slot, &f);
    return error;
}

/* The next `n` bytes of an answer, which need not end where its pieces do. */
static void copy_bytes(char *to, size_t n, const struct answer *answer, int *piece, size_t *done)
{
    while (n) {
        const struct iovec *from = &answer->piece[*piece];
        size_t some = from->iov_len - *done < n ? from->iov_len - *done : n;
        memcpy(to, (const char *)from->iov_base + *done, some);
        to += some;
        n -= some;
        *done += some;
        if (*done == from->iov_len) {
            (*piece)++;
            *done = 0;
        }
    }
}

/* What was read past the tiers gets its headers here. */
static void send_answer(struct serves *s, const struct serve_job *job, uint32_t slot)
{
    const struct peer_question *q = &job->question;
    const struct catalog *c = s->self->config.catalog;
    struct slot_filling f = {.slot = ring_slot(&s->link->ring, RING_IN + slot)};
    uint64_t seed = catalog_file_seed(c, q->file);
    int piece = 0;
    size_t done = 0;
    for (uint32_t i = 0; i < q->count; i++) {
        char *to = f.slot + payload_begin(f.length, i);
        size_t raw = value_raw(c, q->file, q->value + i);
        copy_bytes(to + VALUE_HEADER, raw, &job->read.answer, &piece, &done);
        f.length[i] = (uint32_t)value_seal(NULL, to, raw, value_seed(seed, q->value + i), 0);
    }
    send_slot(s, q, slot, &f);
}

/* Jobs. */

static struct serve_job *job_create(struct serves *s, const struct peer_question *q)
{
    struct serve_job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->question = *q;
    job->serves = s;
    link_get(s->link);
    return job;
}

static void job_free(struct serve_job *job)
{
    answer_release(&job->read.answer);
    link_put(job->serves->link);
    free(job);
}

/* Memory is not held for a slot where it need not be. */
static void lighten_job(struct serves *s, struct serve_job *job)
{
    if (!job->loaded)
        return;
    pthread_mutex_lock(&s->lock);
    bool too_much = s->kept + job->read.span.length > MOST_KEPT;
    pthread_mutex_unlock(&s->lock);
    if (!too_much && !store_holds(s->self->store, job->question.file, job->read.span.offset))
        return;
    answer_release(&job->read.answer);
    job->loaded = false;
}

static struct serve_queue *queue_of(struct serves *s, const struct serve_job *job)
{
    return job->question.flags & FETCH_FED ? &s->fed : &s->pending;
}

/* What readers wait for goes first. With the lock. */
static void queue_job(struct serves *s, struct serve_job *job)
{
    struct serve_queue *queue = queue_of(s, job);
    struct serve_job *last = TAILQ_LAST(queue, serve_queue);
    while (!job->question.flags && last && last->question.flags && job->since - last->since < OVERTAKE_MS * MILLISECOND)
        last = TAILQ_PREV(last, serve_queue, same_queue);
    if (last)
        TAILQ_INSERT_AFTER(queue, last, job, same_queue);
    else
        TAILQ_INSERT_HEAD(queue, job, same_queue);
}

/* NO_SLOT: the job waits for one, and is the caller's no more. */
static uint32_t slot_or_wait(struct serves *s, struct serve_job *job)
{
    pthread_mutex_lock(&s->lock);
    uint32_t slot = pop_slot(s, &job->question);
    pthread_mutex_unlock(&s->lock);
    if (slot != NO_SLOT)
        return slot;
    lighten_job(s, job);
    job->since = clock_now();
    job->told = false;
    pthread_mutex_lock(&s->lock);
    bool over = s->over;
    slot = pop_slot(s, &job->question);
    if (slot == NO_SLOT && !over) {
        s->kept += job->loaded ? job->read.span.length : 0;
        queue_job(s, job);
    }
    pthread_mutex_unlock(&s->lock);
    if (over)
        job_free(job);
    return slot;
}

/* True: the slot is on its way and the job over. */
static bool job_answer(struct serve_job *job, uint32_t slot)
{
    struct serves *s = job->serves;
    if (send_held(s, &job->question, slot)) {
        if (!job->loaded)
            return false;
        send_answer(s, job, slot);
    }
    job_free(job);
    return true;
}

static void job_load(struct serve_job *job);
static void give_slot(struct serves *s, uint32_t slot);

/* Answer it, or load it, once it has a slot. */
static void job_go_on(struct serve_job *job)
{
    struct serves *s = job->serves;
    link_get(s->link);
    uint32_t slot = slot_or_wait(s, job);
    if (slot != NO_SLOT && !job_answer(job, slot)) {
        job_load(job);
        give_slot(s, slot);
    }
    link_put(s->link);
}

static void job_loaded(struct store_read *read, int error)
{
    struct serve_job *job = (struct serve_job *)((char *)read - offsetof(struct serve_job, read));
    if (error) {
        /* -EAGAIN would promise an answer. */
        reply_status(job->serves, &job->question, error == -EAGAIN ? -EIO : error);
        job_free(job);
        return;
    }
    job->loaded = read->answer.pieces > 0;
    job_go_on(job);
}

/* A tier that loses what it is given again and again is no help: the other node has the source, too. A tier that is not
 * open yet may hold what is asked for. */
static void job_load(struct serve_job *job)
{
    const struct peer_question *q = &job->question;
    const struct self *self = job->serves->self;
    job->read.span = (struct span){.file = q->file,
                                   .offset = (uint64_t)q->value * VALUE_BYTES,
                                   .length = (uint32_t)question_bytes(job->serves, q)};
    job->read.done = job_loaded;
    job->read.fed = q->flags & FETCH_FED;
    int error = -EIO;
    if (q->flags & FETCH_BEFORE) {
        error = store_is_opening(self->store) ? -EBUSY : -ENOENT;
    } else if (job->loads++ < MOST_LOADS) {
        reply_status(job->serves, q, -EAGAIN);
        error = store_load(self->store, &job->read);
    }
    if (error != -EINPROGRESS)
        job_loaded(&job->read, error);
}

static void stop_waiting(struct serves *s, struct serve_job *job)
{
    TAILQ_REMOVE(queue_of(s, job), job, same_queue);
    s->kept -= job->loaded ? job->read.span.length : 0;
}

static struct serve_job *first_job(const struct serves *s, const struct serve_queue *queue)
{
    struct serve_job *job = TAILQ_FIRST(queue);
    while (job && !may_have_slot(s, &job->question))
        job = TAILQ_NEXT(job, same_queue);
    return job;
}

/* The job that waits longest of those that may have the slot gets it; NULL: there is none, and the slot is free. */
static struct serve_job *next_job(struct serves *s, uint32_t slot)
{
    pthread_mutex_lock(&s->lock);
    s->asker[slot] = NODES_MOST;
    struct serve_job *job = first_job(s, &s->pending);
    if (!job || s->yields >= MOST_YIELDS) {
        struct serve_job *fed = first_job(s, &s->fed);
        job = fed ? fed : job;
    }
    if (job) {
        stop_waiting(s, job);
        take_slot(s, slot, &job->question);
    } else {
        s->free_slot[s->free++] = slot;
    }
    pthread_mutex_unlock(&s->lock);
    return job;
}

static void give_slot(struct serves *s, uint32_t slot)
{
    struct serve_job *job;
    while ((job = next_job(s, slot))) {
        if (job_answer(job, slot))
            return;
        job_load(job);
    }
}

/* From the ring. */

static bool is_sound(const struct serves *s, const struct peer_question *q)
{
    const struct catalog *c = s->self->config.catalog;
    uint64_t first = (uint64_t)q->value << 32 | q->file, extents = extents_count(s->self->extents);
    if (!fetch_is_sound(q->flags, q->value, q->count))
        return false;
    if (q->flags == FETCH_STORED)
        return first < extents && q->count <= extents - first;
    if (q->flags == FETCH_BLOB)
        return true;
    if (q->file >= catalog_files(c))
        return false;
    uint64_t last = (uint64_t)q->value + q->count - 1, values = EXTENT_BYTES / VALUE_BYTES;
    return last < file_values(c, q->file) && q->value / values == last / values;
}

int serve_asked(struct serves *s, const struct ring_message *m)
{
    struct peer_question q = {m->token, m->node, m->file, m->value, m->count, m->flags};
    if (m->node >= s->nodes || m->node == s->me)
        return -EBADMSG;
    if (!is_sound(s, &q)) {
        reply_status(s, &q, -EINVAL);
        return 0;
    }
    pthread_mutex_lock(&s->lock);
    uint32_t slot = pop_slot(s, &q);
    pthread_mutex_unlock(&s->lock);
    if (slot != NO_SLOT && !send_held(s, &q, slot))
        return 0;
    struct serve_job *job = job_create(s, &q);
    if (!job)
        reply_status(s, &q, -ENOMEM);
    else if (slot == NO_SLOT)
        job_go_on(job);
    else
        job_load(job);
    if (slot != NO_SLOT)
        give_slot(s, slot);
    return 0;
}

int serve_sent(struct serves *s, const struct ring_message *m)
{
    if (m->slot < RING_IN || m->slot >= RING_IN + RING_OUT)
        return -EBADMSG;
    pthread_mutex_lock(&s->lock);
    bool known = s->sending[m->slot - RING_IN];
    s->sending[m->slot - RING_IN] = false;
    pthread_mutex_unlock(&s->lock);
    if (!known)
        return -EBADMSG;
    give_slot(s, m->slot - RING_IN);
    return 0;
}

/* Time, and the end. */

static void drop_jobs(struct serve_queue *jobs, int status)
{
    for (struct serve_job *job; (job = TAILQ_FIRST(jobs));) {
        TAILQ_REMOVE(jobs, job, same_queue);
        if (status)
            reply_status(job->serves, &job->question, status);
        job_free(job);
    }
}

/* With the lock. */
static void look_at_jobs(struct serves *s, struct serve_queue *queue, uint64_t now, struct serve_queue *late)
{
    for (struct serve_job *job = TAILQ_FIRST(queue), *next; job; job = next) {
        next = TAILQ_NEXT(job, same_queue);
        if (now > job->since && now - job->since >= s->self->config.peer_timeout) {
            stop_waiting(s, job);
            TAILQ_INSERT_TAIL(late, job, same_queue);
        } else if (!job->told) {
            reply_status(s, &job->question, -EAGAIN);
            job->told = true;
        }
    }
}

/* A job that was taken out of the queue gets its answer after what is said here: so that is said with the lock. */
void serve_tick(struct serves *s, uint64_t now)
{
    struct serve_queue late = TAILQ_HEAD_INITIALIZER(late);
    pthread_mutex_lock(&s->lock);
    look_at_jobs(s, &s->pending, now, &late);
    look_at_jobs(s, &s->fed, now, &late);
    pthread_mutex_unlock(&s->lock);
    drop_jobs(&late, -EBUSY);
}

void serve_end(struct serves *s)
{
    struct serve_queue left = TAILQ_HEAD_INITIALIZER(left);
    pthread_mutex_lock(&s->lock);
    s->over = true;
    TAILQ_CONCAT(&left, &s->pending, same_queue);
    TAILQ_CONCAT(&left, &s->fed, same_queue);
    s->kept = 0;
    pthread_mutex_unlock(&s->lock);
    drop_jobs(&left, 0);
}
