/* The slots of fetches. A slot serves one question in progress.
 *
 * fs/store/fair.h defines which waiting read of a node is next. The feeder's reads get only a share of a node's slots,
 * and leave some of all slots free. */
#include "fs/world/fetch-inside.h"

#include "fs/base/check.h"
#include "fs/base/clock.h"
#include "fs/world/receive.h"

#include <errno.h>

enum {
    PEER_FETCHES = 32,
    FED_FETCHES = PEER_FETCHES * 3 / 4, /* slots of a node that the feeder's reads may use */
    KEPT_FREE = RING_IN / 4,            /* slots that the feeder's reads leave free */
    MOST_LEFT = RING_IN / 2, /* if more slots than this are LEFT and none is free, reads do not wait for one */
};

void slots_check(const struct fetches *f)
{
#ifdef DEALFS_CHECKS
    int count[FETCH_HELD + 1] = {0}, slots = 0, left = 0;
    for (uint32_t slot = 0; slot < RING_IN; slot++) {
        const struct fetch *fetch = &f->fetch[slot];
        count[fetch->state]++;
        check((fetch->waiting > 0) == (fetch->state == FETCH_ASKED) && fetch->waiting <= fetch->parts);
        check(fetch->node < f->nodes && fetch->number <= f->number);
    }
    for (uint32_t node = 0; node < f->nodes; node++) {
        const struct asked_peer *p = &f->peer[node];
        check(peer_is_sound(&p->peer) && p->left + p->slow <= p->slots && p->slots <= PEER_FETCHES);
        slots += p->slots;
        left += p->left;
    }
    check(count[FETCH_FREE] == f->free && count[FETCH_LEFT] == f->left && left == f->left);
    check(count[FETCH_ASKED] + count[FETCH_LEFT] == slots);
#else
    (void)f;
#endif
}

/* --- waiting --- */

static bool is_hungry(const struct asked_peer *p)
{
    const struct store_read *first = TAILQ_FIRST(&p->queue.list[false]);
    return !fair_is_empty(&p->queue) && p->slots < PEER_FETCHES && many_may_go(p, first) && p->peer.state == PEER_GOOD;
}

void slots_note_hungry(struct fetches *f, struct asked_peer *p)
{
    if (p->hungry || !is_hungry(p))
        return;
    p->hungry = true;
    TAILQ_INSERT_TAIL(&f->hungry, p, same_queue);
}

void slots_expel(struct fetches *f, struct asked_peer *p, struct read_list *expelled)
{
    for (int fed = 0; fed < 2; fed++)
        for (struct store_read *read; (read = read_list_take(&p->queue.list[fed])); f->waiting--)
            TAILQ_INSERT_TAIL(expelled, read, parked);
}

/* When waiting for this node last made sense: something arrived from it, or the read began to wait. */
static uint64_t heard_since(const struct asked_peer *p, const struct store_read *read)
{
    return p->peer.reached > read->asked ? p->peer.reached : read->asked;
}

static void expel_late_of(struct fetches *f, struct asked_peer *p, bool fed, uint64_t now, struct read_list *expelled)
{
    for (struct store_read *read = TAILQ_FIRST(&p->queue.list[fed]), *next; read; read = next) {
        uint64_t since = heard_since(p, read);
        next = TAILQ_NEXT(read, parked);
        if (now <= since || now - since < f->self->config.peer_timeout)
            continue;
        fair_remove(&p->queue, read);
        TAILQ_INSERT_TAIL(expelled, read, parked);
        f->waiting--;
    }
}

void slots_expel_late(struct fetches *f, uint64_t now, struct read_list *expelled)
{
    for (uint32_t node = 0; node < f->nodes && f->waiting; node++) {
        expel_late_of(f, &f->peer[node], false, now, expelled);
        expel_late_of(f, &f->peer[node], true, now, expelled);
    }
}

static enum fair_room fed_room(const struct fetches *f, const struct asked_peer *p)
{
    return p->slots < FED_FETCHES && f->free > KEPT_FREE ? FAIR_WITHIN : FAIR_BEYOND;
}

/* Put a read into a free slot. */
static void occupy(struct fetches *f, struct asked_peer *p, struct store_read *read, struct ring_message *m)
{
    uint32_t slot = f->free_slot[--f->free];
    struct fetch *fetch = &f->fetch[slot];
    fetch->state = FETCH_ASKED;
    fetch->read[0] = read;
    fetch->parts = fetch->waiting = 1;
    fetch->slow = false;
    fetch->number = ++f->number;
    fetch->asked = clock_now();
    fetch->heard = heard_since(p, read);
    fetch->node = (uint32_t)(p - f->peer);
    fetch->shared = !peer_may_be_asked(&p->peer, fetch->asked);
    p->slots++;
    fair_went(&f->turns, read->fed);
    if (!fetch->shared)
        peer_asked(&p->peer);
    if (read->pull) {
        *m = read->pull->question;
    } else {
        receive_ask(f->self->config.catalog, &read->span, m);
        m->flags |= (read->before ? FETCH_BEFORE : 0) | (read->fed ? FETCH_FED : 0) |
                    (read->damaged ? FETCH_VERIFY : 0) | (fetch->shared ? FETCH_SHARED : 0);
    }
    m->kind = RING_FETCH;
    m->node = read->peer = fetch->node;
    m->slot = slot;
    m->token = fetch->number;
}

void slots_vacate(struct fetches *f, struct fetch *fetch)
{
    if (fetch->state == FETCH_LEFT) {
        f->left--;
        f->peer[fetch->node].left--;
    }
    fetch->state = FETCH_FREE;
    fetch->waiting = 0;
    f->free_slot[f->free++] = (uint32_t)(fetch - f->fetch);
}

/* Small reads may then be asked for: a slow question does not count. */
void slots_wait(struct fetches *f, struct fetch *fetch, uint64_t now)
{
    struct asked_peer *p = &f->peer[fetch->node];
    bool first = fetch->state == FETCH_ASKED && !fetch->slow;
    fetch->heard = now;
    p->slow += first;
    fetch->slow |= first;
    slots_note_hungry(f, p);
}

void slots_take_reads(struct fetch *fetch, struct read_list *reads)
{
    for (uint32_t i = 0; i < fetch->parts; i++)
        if (fetch->read[i])
            TAILQ_INSERT_TAIL(reads, fetch->read[i], parked);
    fetch->waiting = 0;
}

void slots_leave(struct fetches *f, struct fetch *fetch, struct read_list *left)
{
    struct asked_peer *p = &f->peer[fetch->node];
    f->left++;
    p->left++;
    p->slow -= fetch->slow;
    fetch->slow = false;
    slots_take_reads(fetch, left);
    fetch->state = FETCH_LEFT;
}

/* Reads wait only for slots that will soon be free: not for those of a node that does not answer. */
static bool may_wait(const struct fetches *f, const struct asked_peer *p)
{
    return p->peer.state == PEER_GOOD && p->left <= PEER_FETCHES / 2 && (f->free || f->left <= MOST_LEFT);
}

int slots_ask(struct fetches *f, struct asked_peer *p, struct store_read *read, struct ring_message *m)
{
    bool waits = may_wait(f, p);
    if (f->free && p->slots < PEER_FETCHES && (many_may_go(p, read) || !waits) &&
        fair_is_next(&p->queue, &f->turns, read->fed, fed_room(f, p))) {
        occupy(f, p, read, m);
        return 0;
    }
    if (!waits)
        return -EHOSTUNREACH;
    fair_add(&p->queue, read);
    f->waiting++;
    slots_note_hungry(f, p);
    return -EINPROGRESS;
}

int slots_feed(struct fetches *f, struct ring_message message[FETCHES_AT_ONCE])
{
    int n = 0;
    for (struct asked_peer *p = TAILQ_FIRST(&f->hungry), *next; p && f->free && n < FETCHES_AT_ONCE; p = next) {
        struct store_read *read = is_hungry(p) ? fair_take(&p->queue, &f->turns, fed_room(f, p)) : NULL;
        if (read) {
            f->waiting--;
            occupy(f, p, read, &message[n]);
            many_gather(f, p, &message[n++]);
        }
        next = TAILQ_NEXT(p, same_queue);
        if (is_hungry(p) && !read)
            continue;
        TAILQ_REMOVE(&f->hungry, p, same_queue);
        p->hungry = false;
        slots_note_hungry(f, p);
        next = read ? TAILQ_FIRST(&f->hungry) : next;
    }
    return n;
}
