/* Serves: answers to other nodes.
 *
 * Threads: ring threads take questions and the return of slots; loader threads end loads. Cached data is copied into a
 * slot at once. A question that needs more becomes a job:
 *
 *   waits for a slot ──▶ answered from a tier, or ──▶ is loaded ──▶ waits for a slot again ──▶ answered
 *
 * fs/store/fair.h defines which waiting job is next. A read of the other node's feeder counts as the feeder's here.
 *
 * If no tier stores the loaded bytes, the answer is in the load's memory. Waiting jobs have at most MOST_KEPT bytes of
 * such memory; the others load again. A job waits for a slot for at most peer_timeout: the other node also has the
 * source. */
#include "fs/world/serve-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_KEPT = 16 << 20,
    MOST_LOADS = 3,
    ASKER_SLOTS = RING_OUT / 4,
    FED_SLOTS = ASKER_SLOTS * 3 / 4, /* slots of a node that its feeder's reads may use */
    KEPT_FREE = RING_OUT / 4,        /* slots that feeders' reads leave free */
};
#define NO_SLOT UINT32_MAX
_Static_assert((int)RING_SENT_BELL <= (int)FED_SLOTS, "who waits for a slot hears of one that is free");

struct serve_job {
    struct peer_question question;
    struct serves *serves;  /* with a reference to its link */
    struct store_read read; /* also represents the job in queues */
    bool loaded;            /* read.answer has the bytes, because no tier has them */
    int loads;
    bool told; /* the other node was told to wait */
    struct fetch_part part[];
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
    TAILQ_INIT(&s->askers);
    s->of = calloc(s->nodes, sizeof *s->of);
    if (!s->of) {
        serves_destroy(s);
        return -ENOMEM;
    }
    for (uint32_t node = 0; node < s->nodes; node++)
        fair_init(&s->of[node].queue);
    for (uint32_t slot = 0; slot < RING_OUT; slot++)
        s->free_slot[s->free++] = RING_OUT - 1 - slot;
    *serves = s;
    return 0;
}

void serves_destroy(struct serves *s)
{
    if (!s)
        return;
    world_put(s->world);
    pthread_mutex_destroy(&s->lock);
    free(s->of);
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

/* --- slots; the caller holds the lock --- */

/* May this node have a slot, as soon as one is free? */
static bool may_have_slot(const struct serve_asker *a)
{
    return a->slots < ASKER_SLOTS;
}

static enum fair_room fed_room(const struct serves *s, const struct serve_asker *a)
{
    return a->slots < FED_SLOTS && s->free > KEPT_FREE ? FAIR_WITHIN : FAIR_BEYOND;
}

static uint32_t take_slot(struct serves *s, uint32_t node, bool fed)
{
    uint32_t slot = s->free_slot[--s->free];
    s->asker[slot] = node;
    s->of[node].slots++;
    fair_went(&s->turns, fed);
    return slot;
}

static uint32_t pop_slot(struct serves *s, uint32_t node, bool fed)
{
    const struct serve_asker *a = &s->of[node];
    bool may = !s->over && s->free && may_have_slot(a) && fair_is_next(&a->queue, &s->turns, fed, fed_room(s, a));
    return may ? take_slot(s, node, fed) : NO_SLOT;
}

/* --- jobs --- */

static struct serve_job *job_create(struct serves *s, const struct peer_question *q)
{
    size_t parts = q->part ? q->count * sizeof *q->part : 0;
    struct serve_job *job = calloc(1, sizeof *job + parts);
    if (!job)
        return NULL;
    job->question = *q;
    if (parts)
        job->question.part = memcpy(job->part, q->part, parts);
    job->read.fed = q->flags & FETCH_FED;
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

/* Before a job waits: release the loaded bytes if a tier has them, or if waiting jobs have too many. */
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

/* --- waiting jobs; the caller holds the lock --- */

static struct serve_job *job_of(struct store_read *read)
{
    return (struct serve_job *)((char *)read - offsetof(struct serve_job, read));
}

static void note_asker(struct serves *s, struct serve_asker *a)
{
    a->queued = !fair_is_empty(&a->queue);
    if (a->queued)
        TAILQ_INSERT_TAIL(&s->askers, a, same_queue);
}

static void queue_job(struct serves *s, struct serve_job *job)
{
    struct serve_asker *a = &s->of[job->question.node];
    job->read.pulled = job->question.flags != 0 && job->question.flags != FETCH_MANY;
    s->kept += job->loaded ? job->read.span.length : 0;
    fair_add(&a->queue, &job->read);
    if (!a->queued)
        note_asker(s, a);
}

/* A job has left its node's queue: the node moves to the end of `askers`. */
static void stop_waiting(struct serves *s, const struct serve_job *job)
{
    struct serve_asker *a = &s->of[job->question.node];
    s->kept -= job->loaded ? job->read.span.length : 0;
    TAILQ_REMOVE(&s->askers, a, same_queue);
    note_asker(s, a);
}

/* NO_SLOT: the job is queued, and no longer the caller's. */
static uint32_t slot_or_wait(struct serves *s, struct serve_job *job)
{
    pthread_mutex_lock(&s->lock);
    uint32_t slot = pop_slot(s, job->question.node, job->read.fed);
    pthread_mutex_unlock(&s->lock);
    if (slot != NO_SLOT)
        return slot;
    lighten_job(s, job);
    job->read.asked = clock_now();
    job->told = false;
    pthread_mutex_lock(&s->lock);
    bool over = s->over;
    slot = pop_slot(s, job->question.node, job->read.fed);
    if (slot == NO_SLOT && !over)
        queue_job(s, job);
    pthread_mutex_unlock(&s->lock);
    if (over)
        job_free(job);
    return slot;
}

/* True: the slot is sent, and the job has ended. */
static bool job_answer(struct serve_job *job, uint32_t slot)
{
    struct serves *s = job->serves;
    if (reply_held(s, &job->question, slot)) {
        if (!job->loaded)
            return false;
        reply_answer(s, &job->question, &job->read.answer, slot);
    }
    job_free(job);
    return true;
}

static void job_load(struct serve_job *job);
static void give_slot(struct serves *s, uint32_t slot);

/* Answer a job, or load for it and wait for a slot. */
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
    struct serve_job *job = job_of(read);
    if (error) {
        /* -EAGAIN would promise an answer */
        reply_status(job->serves, &job->question, error == -EAGAIN ? -EIO : error);
        job_free(job);
        return;
    }
    job->loaded = read->answer.pieces > 0;
    job_go_on(job);
}

/* Loads for a job. If no tier kept the bytes MOST_LOADS times, the other node reads the source itself. A tier that is
 * not open yet may have the data. */
static void job_load(struct serve_job *job)
{
    const struct peer_question *q = &job->question;
    const struct self *self = job->serves->self;
    job->read.span = question_values(job->serves, q);
    job->read.done = job_loaded;
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

/* Free a slot, and give it to the next job that may have it. NULL: there is none. */
static struct serve_job *next_job(struct serves *s, uint32_t *slot)
{
    struct store_read *read = NULL;
    struct serve_asker *a;
    LOCK_SCOPE(&s->lock);
    s->of[s->asker[*slot]].slots--;
    s->free_slot[s->free++] = *slot;
    TAILQ_FOREACH(a, &s->askers, same_queue) {
        read = may_have_slot(a) ? fair_take(&a->queue, &s->turns, fed_room(s, a)) : NULL;
        if (read)
            break;
    }
    if (read) {
        stop_waiting(s, job_of(read));
        *slot = take_slot(s, job_of(read)->question.node, read->fed);
    }
    return read ? job_of(read) : NULL;
}

static void give_slot(struct serves *s, uint32_t slot)
{
    struct serve_job *job;
    while ((job = next_job(s, &slot))) {
        if (job_answer(job, slot))
            return;
        job_load(job);
    }
}

/* --- from the ring --- */

static bool is_sound(const struct serves *s, const struct peer_question *q)
{
    const struct catalog *c = s->self->config.catalog;
    uint64_t first = (uint64_t)q->value << 32 | q->file, extents = extents_count(s->self->extents);
    if (q->flags == FETCH_STORED)
        return first < extents && q->count <= extents - first;
    if (q->flags == FETCH_BLOB)
        return true;
    if (q->file >= catalog_files(c) || (q->head + q->tail && !file_in_blocks(c, q->file)))
        return false;
    uint64_t last = (uint64_t)q->value + q->count - 1, values = EXTENT_BYTES / VALUE_BYTES;
    if (last >= file_values(c, q->file) || q->value / values != last / values)
        return false;
    return q->tail + (last == q->value ? q->head : 0) <= (value_raw(c, q->file, last) - 1) / VALUE_BLOCK;
}

static bool are_sound(const struct serves *s, const struct peer_question *q)
{
    bool right = fetch_parts_are_sound(q->part, q->count);
    for (uint32_t i = 0; right && i < q->count; i++) {
        const struct peer_question part = question_of(&q->part[i]);
        right = is_sound(s, &part);
    }
    return right;
}

/* The courier can change its list at any time, so it is copied first. */
static bool take_question(const struct serves *s, const struct ring_message *m, struct peer_question *q,
                          struct fetch_part part[MANY_MOST])
{
    const struct fetch_part whole = {m->file, m->value, m->count, m->flags};
    *q = question_of(&whole);
    q->token = m->token;
    q->node = m->node;
    if (!fetch_is_sound(m->flags, m->value, m->count))
        return false;
    if (m->flags != FETCH_MANY)
        return is_sound(s, q);
    if (m->slot >= RING_LISTS)
        return false;
    q->part = memcpy(part, ring_list(&s->link->ring, m->slot), m->count * sizeof *part);
    return are_sound(s, q);
}

int serve_asked(struct serves *s, const struct ring_message *m)
{
    struct peer_question q;
    struct fetch_part part[MANY_MOST];
    if (m->node >= s->nodes || m->node == s->me)
        return -EBADMSG;
    if (!take_question(s, m, &q, part)) {
        reply_status(s, &q, -EINVAL);
        return 0;
    }
    pthread_mutex_lock(&s->lock);
    uint32_t slot = pop_slot(s, q.node, q.flags & FETCH_FED);
    pthread_mutex_unlock(&s->lock);
    if (slot != NO_SLOT && !reply_held(s, &q, slot))
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

/* --- time, and the end --- */

static void drop_jobs(struct read_list *reads, int status)
{
    for (struct store_read *read; (read = read_list_take(reads));) {
        struct serve_job *job = job_of(read);
        if (status)
            reply_status(job->serves, &job->question, status);
        job_free(job);
    }
}

/* The caller holds the lock. */
static void look_at_jobs(struct serves *s, struct serve_asker *a, bool fed, uint64_t now, struct read_list *late)
{
    for (struct store_read *read = TAILQ_FIRST(&a->queue.list[fed]), *next; read; read = next) {
        struct serve_job *job = job_of(read);
        next = TAILQ_NEXT(read, parked);
        if (now > read->asked && now - read->asked >= s->self->config.peer_timeout) {
            fair_remove(&a->queue, read);
            stop_waiting(s, job);
            TAILQ_INSERT_TAIL(late, read, parked);
        } else if (!job->told) {
            reply_status(s, &job->question, -EAGAIN);
            job->told = true;
        }
    }
}

/* Sent with the lock, so that WAIT precedes the answer of a job that leaves the queue meanwhile. */
void serve_tick(struct serves *s, uint64_t now)
{
    struct read_list late = TAILQ_HEAD_INITIALIZER(late);
    pthread_mutex_lock(&s->lock);
    for (uint32_t node = 0; node < s->nodes && !TAILQ_EMPTY(&s->askers); node++) {
        look_at_jobs(s, &s->of[node], false, now, &late);
        look_at_jobs(s, &s->of[node], true, now, &late);
    }
    pthread_mutex_unlock(&s->lock);
    drop_jobs(&late, -EBUSY);
}

void serve_end(struct serves *s)
{
    struct read_list left = TAILQ_HEAD_INITIALIZER(left);
    struct serve_asker *a;
    pthread_mutex_lock(&s->lock);
    s->over = true;
    for (; (a = TAILQ_FIRST(&s->askers)); a->queued = false) {
        TAILQ_CONCAT(&left, &a->queue.list[false], parked);
        TAILQ_CONCAT(&left, &a->queue.list[true], parked);
        TAILQ_REMOVE(&s->askers, a, same_queue);
    }
    s->kept = 0;
    pthread_mutex_unlock(&s->lock);
    drop_jobs(&left, 0);
}
