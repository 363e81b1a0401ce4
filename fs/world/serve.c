/* Answering other nodes.
 *
 * Threads: ring threads take what is asked and what was sent; the loader's threads end the loads. What the tiers hold is
 * copied into a slot at once. A question that needs more is a job:
 *
 *   waits for a slot ──▶ answered from a tier, or ──▶ is loaded ──▶ answered, after it waited for a slot again
 *
 * It is loaded as a reader of this node would have it loaded, so that all who ask wait for the same load; meanwhile the
 * other node is told to wait. What no tier keeps is answered out of the load's own memory: of jobs that wait for slots
 * with such memory there are at most MOST_KEPT bytes, the others load again.
 *
 * A node that falls silent keeps the slots of its answers: it has at most ASKER_SLOTS. And a job waits for a slot no
 * longer than peer_timeout: who asked has the source, too. */
#include "fs/world/inside.h"

#include "fs/base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KEPT = 16 << 20, MOST_LOADS = 3, ASKER_SLOTS = RING_OUT / 4 };
#define NO_SLOT UINT32_MAX
_Static_assert((int)RING_SENT_BELL <= (int)ASKER_SLOTS, "who waits for a slot hears of one that is free");

struct question {
    uint64_t token;
    uint32_t node, file, value, count;
};

struct job {
    struct question question;
    struct link *link; /* referenced */
    struct store_read read;
    bool loaded; /* read.answer has it, because no tier does */
    int loads;
    uint64_t since; /* when it began to wait for a slot */
    bool told;      /* that it waits */
    TAILQ_ENTRY(job) same_queue;
};

int serves_init(struct link *l)
{
    struct serves *s = &l->serves;
    pthread_mutex_init(&s->lock, NULL);
    TAILQ_INIT(&s->pending);
    for (uint32_t slot = 0; slot < RING_OUT; slot++) {
        s->asker[slot] = NODES_MOST;
        s->free_slot[s->free++] = RING_OUT - 1 - slot;
    }
    return 0;
}

void serves_fini(struct link *l)
{
    pthread_mutex_destroy(&l->serves.lock);
}

/* Replies. */

static void say(struct link *l, const struct question *q, int status)
{
    struct ring_message m = {.kind = RING_REPLY, .node = q->node, .token = q->token, .status = status};
    link_push(l, &m);
}

/* The slots, with the lock. */

static bool may_have(const struct serves *s, uint32_t node)
{
    int has = 0;
    for (uint32_t slot = 0; slot < RING_OUT; slot++)
        has += s->asker[slot] == node;
    return has < ASKER_SLOTS;
}

static uint32_t pop_slot(struct serves *s, uint32_t node)
{
    if (s->over || !s->free || !may_have(s, node))
        return NO_SLOT;
    uint32_t slot = s->free_slot[--s->free];
    s->asker[slot] = node;
    return slot;
}

static uint32_t take_slot(struct serves *s, uint32_t node)
{
    pthread_mutex_lock(&s->lock);
    uint32_t slot = pop_slot(s, node);
    pthread_mutex_unlock(&s->lock);
    return slot;
}

/* A payload that is being put together. */
struct filling {
    char *slot;
    uint32_t length[RING_VALUES];
};

static void put_value(void *user, uint32_t i, const void *bytes, uint32_t length)
{
    struct filling *f = user;
    memcpy(f->slot + payload_begin(f->length, i), bytes, length);
    f->length[i] = length;
}

static void send_slot(struct link *l, const struct question *q, uint32_t slot, struct filling *f)
{
    struct serves *s = &l->serves;
    payload_finish(f->slot, q->file, q->value, q->count, f->length);
    struct ring_message m = {
        .kind = RING_REPLY,
        .node = q->node,
        .token = q->token,
        .slot = RING_IN + slot,
        .length = (uint32_t)payload_begin(f->length, q->count),
    };
    pthread_mutex_lock(&s->lock);
    s->sending[slot] = true;
    pthread_mutex_unlock(&s->lock);
    link_push(l, &m);
}

/* -ENOENT: the tiers have not all of it; the slot is still the caller's. */
static int send_held(struct link *l, const struct question *q, uint32_t slot)
{
    struct filling f = {.slot = ring_slot(&l->ring, RING_IN + slot)};
    int error = store_stored(l->peers->store, q->file, q->value, q->count, put_value, &f);
    if (!error)
        send_slot(l, q, slot, &f);
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
static void send_answer(struct link *l, const struct job *job, uint32_t slot)
{
    const struct question *q = &job->question;
    const struct catalog *c = l->peers->config.catalog;
    struct filling f = {.slot = ring_slot(&l->ring, RING_IN + slot)};
    uint64_t seed = catalog_file_seed(c, q->file);
    int piece = 0;
    size_t done = 0;
    for (uint32_t i = 0; i < q->count; i++) {
        char *to = f.slot + payload_begin(f.length, i);
        size_t raw = raw_of(c, q->file, q->value + i);
        copy_bytes(to + VALUE_HEADER, raw, &job->read.answer, &piece, &done);
        f.length[i] = (uint32_t)value_seal(NULL, to, raw, value_seed(seed, q->value + i), 0);
    }
    send_slot(l, q, slot, &f);
}

/* Jobs. */

static void job_free(struct job *job)
{
    answer_release(&job->read.answer);
    link_put(job->link);
    free(job);
}

/* Memory is not held for a slot where it need not be. */
static void lighten(struct job *job)
{
    struct serves *s = &job->link->serves;
    if (!job->loaded)
        return;
    pthread_mutex_lock(&s->lock);
    bool too_much = s->kept + job->read.span.length > MOST_KEPT;
    pthread_mutex_unlock(&s->lock);
    if (!too_much && !store_holds(job->link->peers->store, job->question.file, job->read.span.offset))
        return;
    answer_release(&job->read.answer);
    job->loaded = false;
}

/* NO_SLOT: the job waits for one, and is the caller's no more. */
static uint32_t slot_or_wait(struct job *job)
{
    struct serves *s = &job->link->serves;
    uint32_t slot = take_slot(s, job->question.node);
    if (slot != NO_SLOT)
        return slot;
    lighten(job);
    job->since = clock_now();
    job->told = false;
    pthread_mutex_lock(&s->lock);
    bool over = s->over;
    slot = pop_slot(s, job->question.node);
    if (slot == NO_SLOT && !over) {
        s->kept += job->loaded ? job->read.span.length : 0;
        TAILQ_INSERT_TAIL(&s->pending, job, same_queue);
    }
    pthread_mutex_unlock(&s->lock);
    if (over)
        job_free(job);
    return slot;
}

/* True: the slot is on its way and the job over. */
static bool job_answer(struct job *job, uint32_t slot)
{
    struct link *l = job->link;
    if (send_held(l, &job->question, slot)) {
        if (!job->loaded)
            return false;
        send_answer(l, job, slot);
    }
    job_free(job);
    return true;
}

static void job_load(struct job *job);
static void give_slot(struct link *l, uint32_t slot);

static void loaded(struct store_read *read, int error)
{
    struct job *job = (struct job *)((char *)read - offsetof(struct job, read));
    if (error) {
        say(job->link, &job->question, error == -EAGAIN ? -EIO : error); /* -EAGAIN would promise an answer */
        job_free(job);
        return;
    }
    struct link *l = link_get(job->link);
    job->loaded = read->answer.pieces > 0;
    uint32_t slot = slot_or_wait(job);
    if (slot != NO_SLOT && !job_answer(job, slot)) {
        job_load(job);
        give_slot(l, slot);
    }
    link_put(l);
}

/* A tier that loses what it is given again and again is no help: the other node has the source, too. */
static void job_load(struct job *job)
{
    const struct question *q = &job->question;
    struct store_read *read = &job->read;
    uint64_t size = catalog_file(job->link->peers->config.catalog, q->file).size;
    uint64_t begin = (uint64_t)q->value * VALUE_BYTES, end = begin + (uint64_t)q->count * VALUE_BYTES;
    read->span = (struct span){.file = q->file, .offset = begin, .length = (uint32_t)((end < size ? end : size) - begin)};
    read->done = loaded;
    int error = -EIO;
    if (job->loads++ < MOST_LOADS) {
        say(job->link, q, -EAGAIN);
        error = store_load(job->link->peers->store, read);
    }
    if (error != -EINPROGRESS)
        loaded(read, error);
}

static void stop_waiting(struct serves *s, struct job *job)
{
    TAILQ_REMOVE(&s->pending, job, same_queue);
    s->kept -= job->loaded ? job->read.span.length : 0;
}

/* The job that waits longest of those that may have the slot gets it; NULL: there is none, and the slot is free. */
static struct job *next_job(struct serves *s, uint32_t slot)
{
    pthread_mutex_lock(&s->lock);
    struct job *job = TAILQ_FIRST(&s->pending);
    s->asker[slot] = NODES_MOST;
    while (job && !may_have(s, job->question.node))
        job = TAILQ_NEXT(job, same_queue);
    if (job) {
        stop_waiting(s, job);
        s->asker[slot] = job->question.node;
    } else {
        s->free_slot[s->free++] = slot;
    }
    pthread_mutex_unlock(&s->lock);
    return job;
}

static void give_slot(struct link *l, uint32_t slot)
{
    struct job *job;
    while ((job = next_job(&l->serves, slot))) {
        if (job_answer(job, slot))
            return;
        job_load(job);
    }
}

static struct job *job_create(struct link *l, const struct question *q)
{
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return NULL;
    job->question = *q;
    job->link = link_get(l);
    return job;
}

/* From the ring. */

static bool is_sound(struct link *l, const struct question *q)
{
    const struct catalog *c = l->peers->config.catalog;
    if (q->file >= catalog_files(c) || !q->count || q->count > RING_VALUES)
        return false;
    uint64_t last = (uint64_t)q->value + q->count - 1, values = EXTENT_BYTES / VALUE_BYTES;
    return last < values_of(c, q->file) && q->value / values == last / values;
}

static void answer_later(struct link *l, const struct question *q, bool load)
{
    struct job *job = job_create(l, q);
    if (!job) {
        say(l, q, -ENOMEM);
        return;
    }
    uint32_t slot = load ? NO_SLOT : slot_or_wait(job);
    if (load)
        job_load(job);
    else if (slot != NO_SLOT && !job_answer(job, slot)) {
        job_load(job);
        give_slot(l, slot);
    }
}

int serve_asked(struct link *l, const struct ring_message *m)
{
    struct question q = {m->token, m->node, m->file, m->value, m->count};
    if (m->node >= l->world->nodes || m->node == l->world->me)
        return -EBADMSG;
    if (!is_sound(l, &q)) {
        say(l, &q, -EINVAL);
        return 0;
    }
    uint32_t slot = take_slot(&l->serves, q.node);
    if (slot == NO_SLOT) {
        answer_later(l, &q, false);
    } else if (send_held(l, &q, slot)) {
        answer_later(l, &q, true);
        give_slot(l, slot);
    }
    return 0;
}

int serve_sent(struct link *l, const struct ring_message *m)
{
    struct serves *s = &l->serves;
    if (m->slot < RING_IN || m->slot >= RING_IN + RING_OUT)
        return -EBADMSG;
    pthread_mutex_lock(&s->lock);
    bool known = s->sending[m->slot - RING_IN];
    s->sending[m->slot - RING_IN] = false;
    pthread_mutex_unlock(&s->lock);
    if (!known)
        return -EBADMSG;
    give_slot(l, m->slot - RING_IN);
    return 0;
}

/* A job that was taken out of the queue gets its answer after what is said here: so that is said with the lock. */
void serve_tick(struct link *l, uint64_t now)
{
    struct serves *s = &l->serves;
    TAILQ_HEAD(, job) late = TAILQ_HEAD_INITIALIZER(late);
    pthread_mutex_lock(&s->lock);
    for (struct job *job = TAILQ_FIRST(&s->pending), *next; job; job = next) {
        next = TAILQ_NEXT(job, same_queue);
        if (now > job->since && now - job->since >= l->peers->config.peer_timeout) {
            stop_waiting(s, job);
            TAILQ_INSERT_TAIL(&late, job, same_queue);
        } else if (!job->told) {
            say(l, &job->question, -EAGAIN);
            job->told = true;
        }
    }
    pthread_mutex_unlock(&s->lock);
    for (struct job *job; (job = TAILQ_FIRST(&late));) {
        TAILQ_REMOVE(&late, job, same_queue);
        say(l, &job->question, -EBUSY);
        job_free(job);
    }
}

void serve_end(struct link *l)
{
    struct serves *s = &l->serves;
    TAILQ_HEAD(, job) left = TAILQ_HEAD_INITIALIZER(left);
    pthread_mutex_lock(&s->lock);
    s->over = true;
    TAILQ_CONCAT(&left, &s->pending, same_queue);
    s->kept = 0;
    pthread_mutex_unlock(&s->lock);
    for (struct job *job; (job = TAILQ_FIRST(&left));) {
        TAILQ_REMOVE(&left, job, same_queue);
        job_free(job);
    }
}
