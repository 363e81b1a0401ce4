/* Fetches: asking other nodes for data.
 *
 * Threads: readers and loader threads ask. Ring threads bring answers. The timer thread times out silent nodes. Any
 * thread may release an answer. `lock` guards everything; it is not held while messages are sent or the store is
 * called. fetch-inside.h has the states of a slot.
 *
 * If many small reads wait, one question asks for several of them: fetch-many.c.
 *
 * A node that neither has nor owns the data replies -ENOENT. If the layout has turned meanwhile, the owner by the new
 * layout is asked next. Otherwise the previous owner is asked, once.
 *
 * The server of a node can hang while its courier still answers from the RAM tier. Such a node is suspected, and its
 * courier is asked with FETCH_SHARED: peer.h. */
#include "fs/world/fetch-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/world/receive.h"

#include <errno.h>
#include <stdlib.h>

int fetches_create(struct link *link, struct self *self, struct world *world, struct fetches **fetches)
{
    struct fetches *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    f->link = link;
    f->self = self;
    f->nodes = world->nodes;
    f->me = world->me;
    f->world = world_get(world);
    pthread_mutex_init(&f->lock, NULL);
    TAILQ_INIT(&f->hungry);
    f->peer = calloc(f->nodes, sizeof *f->peer);
    for (uint32_t node = 0; f->peer && node < f->nodes; node++)
        fair_init(&f->peer[node].queue);
    for (uint32_t slot = 0; slot < RING_IN; slot++) {
        f->fetch[slot].fetches = f;
        f->free_slot[f->free++] = RING_IN - 1 - slot;
    }
    if (!f->peer) {
        fetches_destroy(f);
        return -ENOMEM;
    }
    *fetches = f;
    return 0;
}

void fetches_destroy(struct fetches *f)
{
    if (!f)
        return;
    world_put(f->world);
    free(f->peer);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static void fetches_unlock(struct fetches *f)
{
    slots_check(f);
    pthread_mutex_unlock(&f->lock);
}

/* --- nodes; the caller holds the lock --- */

static const char *host_of(const struct fetches *f, uint32_t node)
{
    return layout_node(f->world->layout, node)->host;
}

static void suspect(struct fetches *f, uint32_t node, uint64_t since, uint64_t now)
{
    struct peer_record *peer = &f->peer[node].peer;
    if (peer_suspect(peer, since, now))
        log_limited(LOG_LEVEL_WARNING, 5, "node %u (%s) does not answer: %s for %llu s", node, host_of(f, node),
                    peer->shares ? "only its courier is asked" : "no requests to it",
                    (unsigned long long)(peer->pause / SECOND));
}

/* Can only a server answer it? */
static bool needs_server(const struct store_read *read)
{
    return read->pull || read->before || read->damaged || read->unshared;
}

static struct asked_peer *peer_if_asked(struct fetches *f, uint32_t node, const struct store_read *read, uint64_t now)
{
    struct asked_peer *p = node < f->nodes && node != f->me ? &f->peer[node] : NULL;
    bool may = p && (peer_may_be_asked(&p->peer, now) || (p->peer.shares && !needs_server(read)));
    return may ? p : NULL;
}

uint32_t fetch_owner_before(const struct fetches *f, uint32_t file, uint64_t offset)
{
    const struct world *w = f->world;
    return w->before ? layout_owner(w->before, w->group, extents_at(f->self->extents, file, offset)) : NO_OWNER;
}

/* Choose the owner in this node's group, else an owner in another group that can be asked. If a turn made this node the
 * owner after the store looked, the previous owner is asked. */
static struct asked_peer *choose_peer(struct fetches *f, const struct store_read *read, uint64_t now)
{
    const struct world *w = f->world;
    uint32_t groups = layout_groups(w->layout);
    if (read->pull)
        return peer_if_asked(f, read->pull->question.node, read, now);
    if (read->before)
        return peer_if_asked(f, fetch_owner_before(f, read->span.file, read->span.offset), read, now);
    uint64_t extent = extents_at(f->self->extents, read->span.file, read->span.offset);
    for (uint32_t i = 0; i < groups; i++) {
        uint32_t owner = layout_owner(w->layout, (w->group + i) % groups, extent);
        if (owner == f->me)
            owner = fetch_owner_before(f, read->span.file, read->span.offset);
        struct asked_peer *p = peer_if_asked(f, owner, read, now);
        if (p)
            return p;
    }
    return NULL;
}

static void lose(struct fetches *f, uint32_t node, struct read_list *expelled)
{
    if (peer_lose(&f->peer[node].peer))
        log_limited(LOG_LEVEL_WARNING, 5, "node %u (%s) has left the world: its share is read from the source", node,
                    host_of(f, node));
    slots_expel(f, &f->peer[node], expelled);
}

/* --- asking --- */

static bool is_asked(const struct fetch *fetch, uint64_t number)
{
    return fetch->number == number && (fetch->state == FETCH_ASKED || fetch->state == FETCH_LEFT);
}

/* Hand the read to the store, or to the thread that waits for it. */
static void end_read(struct fetches *f, struct store_read *read, int error)
{
    if (read->pull)
        pull_over(f, read->pull, error);
    else
        store_fetched(f->self->store, read, error);
}

/* If the ring has no room, the courier never learns of the message. */
static void ask_courier(struct fetches *f, const struct ring_message *m)
{
    int error = link_try(f->link, m);
    if (!error)
        return;
    struct fetch *fetch = &f->fetch[m->slot];
    struct read_list reads = TAILQ_HEAD_INITIALIZER(reads);
    pthread_mutex_lock(&f->lock);
    if (is_asked(fetch, m->token)) {
        struct asked_peer *p = &f->peer[fetch->node];
        if (fetch->state == FETCH_ASKED)
            slots_take_reads(fetch, &reads);
        p->slots--;
        p->peer.probing = false;
        slots_vacate(f, fetch);
        slots_note_hungry(f, p);
    }
    fetches_unlock(f);
    for (struct store_read *read; (read = read_list_take(&reads));)
        end_read(f, read, error);
}

/* To call when a slot has become free. */
static void feed_all(struct fetches *f)
{
    struct ring_message message[FETCHES_AT_ONCE];
    int n;
    do {
        pthread_mutex_lock(&f->lock);
        n = f->over ? 0 : slots_feed(f, message);
        fetches_unlock(f);
        for (int i = 0; i < n; i++)
            ask_courier(f, &message[i]);
    } while (n == FETCHES_AT_ONCE);
}

static int ask_for(struct fetches *f, struct store_read *read, bool alone)
{
    struct ring_message message;
    read->asked = clock_now();
    read->small = alone ? 0 : many_bytes(f, read);
    pthread_mutex_lock(&f->lock);
    struct asked_peer *p = f->over ? NULL : choose_peer(f, read, read->asked);
    int error = p ? slots_ask(f, p, read, &message) : -EHOSTUNREACH;
    fetches_unlock(f);
    if (!error)
        ask_courier(f, &message);
    return error ? error : -EINPROGRESS;
}

int fetch_ask(struct fetches *f, struct store_read *read)
{
    return ask_for(f, read, false);
}

/* Is there another node to ask? After a loss, or if a courier cannot answer alone, the owner in another group; after
 * -ENOENT, the owner by the new layout, else the previous owner. A node that replied -ENOENT is not asked again. */
static bool has_another(struct fetches *f, struct store_read *read, int error)
{
    if (error != -EHOSTDOWN && error != -EHOSTUNREACH && error != -ENOENT)
        return false;
    read->unshared |= error == -EHOSTUNREACH;
    LOCK_SCOPE(&f->lock);
    const struct asked_peer *p = choose_peer(f, read, clock_now());
    bool another = p && (uint32_t)(p - f->peer) != read->peer;
    if (error == -ENOENT && !another && !read->before) {
        uint32_t before = fetch_owner_before(f, read->span.file, read->span.offset);
        another = read->before = before < f->nodes && before != f->me && before != read->peer;
    }
    return another;
}

/* Ask another node, or else have the store read the source. -ENOBUFS: ask again, one question per read. */
static void give_back(struct fetches *f, struct read_list *reads, int error)
{
    bool alone = error == -ENOBUFS;
    for (struct store_read *read; (read = read_list_take(reads));)
        if (!(alone || has_another(f, read, error)) || ask_for(f, read, alone) != -EINPROGRESS)
            end_read(f, read, error);
}

/* --- answers --- */

void fetch_release(void *object)
{
    struct fetch *fetch = object;
    struct fetches *f = fetch->fetches;
    if (atomic_fetch_sub_explicit(&fetch->held, 1, memory_order_acq_rel) > 1)
        return;
    pthread_mutex_lock(&f->lock);
    slots_vacate(f, fetch);
    bool more = !TAILQ_EMPTY(&f->hungry);
    fetches_unlock(f);
    if (more)
        feed_all(f);
    link_put(f->link);
}

void fetch_count_bad(struct fetches *f, uint32_t node)
{
    atomic_fetch_add(&f->self->bad, 1);
    LOCK_SCOPE(&f->lock);
    log_limited(LOG_LEVEL_WARNING, 5, "node %u (%s) sent data with a wrong checksum", node, host_of(f, node));
}

/* Raw bytes stay in the slot until the answer is released. Compressed values are unpacked. */
void fetch_complete(struct fetches *f, struct fetch *fetch, const struct payload_part *part, struct store_read *read)
{
    bool in_slot = false;
    int error = receive_payload(f->self, part->bytes, part->length, read, &in_slot);
    if (in_slot) {
        atomic_fetch_add_explicit(&fetch->held, 1, memory_order_relaxed);
        answer_pin(&read->answer, fetch_release, fetch);
    }
    bool again = error == -EBADMSG && !read->damaged;
    if (error == -EBADMSG)
        fetch_count_bad(f, fetch->node);
    read->damaged |= again;
    /* the other node's courier does not verify values; its server does, and replaces damaged ones */
    if (!again || ask_for(f, read, true) != -EINPROGRESS)
        store_fetched(f->self->store, read, error);
}

static void complete_fetch(struct fetches *f, struct fetch *fetch, uint32_t length)
{
    struct read_list missing = TAILQ_HEAD_INITIALIZER(missing);
    struct store_read *read = fetch->read[0];
    if (fetch->parts == 1 && read->pull) {
        read->pull->fetch = fetch;
        read->pull->length = length;
        end_read(f, read, 0);
        return;
    }
    if (fetch->parts == 1)
        fetch_complete(f, fetch, &(struct payload_part){fetch_slot(f, fetch), length}, read);
    else
        many_complete(f, fetch, length, &missing);
    fetch_release(fetch);
    give_back(f, &missing, -ENOBUFS);
}

/* The courier has ended this fetch; the caller holds the lock. True: the slot has the answers of its reads. */
static bool end_fetch(struct fetches *f, struct fetch *fetch, int status, struct read_list *back)
{
    struct asked_peer *p = &f->peer[fetch->node];
    bool answered = fetch->state == FETCH_ASKED && !status;
    p->slots--;
    p->slow -= fetch->slow;
    if (answered) {
        fetch->state = FETCH_HELD;
        fetch->waiting = 0;
        atomic_store_explicit(&fetch->held, 1, memory_order_relaxed);
        link_get(f->link);
    } else {
        if (fetch->state == FETCH_ASKED)
            slots_take_reads(fetch, back);
        slots_vacate(f, fetch);
    }
    if (status == -EHOSTDOWN)
        lose(f, fetch->node, back);
    slots_note_hungry(f, p);
    return answered;
}

/* Did the courier of the other node make this answer, without its server? */
static bool is_of_courier(const struct fetches *f, const struct fetch *fetch, const struct ring_message *m)
{
    if (m->status == 0)
        return payload_is_shared(fetch_slot(f, fetch), m->length);
    return (fetch->shared && m->status == -EHOSTUNREACH) || (fetch->parts > 1 && m->status == -ENOBUFS);
}

static void note_answer(struct fetches *f, const struct fetch *fetch, const struct ring_message *m, uint64_t now)
{
    struct asked_peer *p = &f->peer[fetch->node];
    if (m->status == 0)
        peer_answered(&p->times, now - fetch->asked);
    if (m->status == -EHOSTDOWN)
        return;
    if (!is_of_courier(f, fetch, m)) {
        peer_heard(&p->peer, now);
        return;
    }
    peer_reached(&p->peer, now);
    if (fetch->state == FETCH_ASKED && !fetch->shared)
        p->peer.probing = false; /* the next question may reach the server */
}

int fetch_answered(struct fetches *f, const struct ring_message *m)
{
    if (m->slot >= RING_IN || m->status > 0 || m->length > RING_SLOT)
        return -EBADMSG;
    struct fetch *fetch = &f->fetch[m->slot];
    struct read_list back = TAILQ_HEAD_INITIALIZER(back);
    bool answered = false;
    uint64_t now = clock_now();
    pthread_mutex_lock(&f->lock);
    bool known = is_asked(fetch, m->token);
    if (known)
        note_answer(f, fetch, m, now);
    if (known && m->status == -EAGAIN)
        slots_wait(f, fetch, now);
    else if (known)
        answered = end_fetch(f, fetch, m->status, &back);
    bool more = !TAILQ_EMPTY(&f->hungry);
    fetches_unlock(f);
    if (!known)
        log_limited(LOG_LEVEL_WARNING, 1, "the courier answered a request that has ended");
    if (more)
        feed_all(f);
    if (answered)
        complete_fetch(f, fetch, m->length);
    give_back(f, &back, m->status);
    return 0;
}

int fetch_lost(struct fetches *f, uint32_t node)
{
    struct read_list expelled = TAILQ_HEAD_INITIALIZER(expelled);
    if (node >= f->nodes || node == f->me)
        return -EBADMSG;
    pthread_mutex_lock(&f->lock);
    lose(f, node, &expelled);
    fetches_unlock(f);
    give_back(f, &expelled, -EHOSTDOWN);
    return 0;
}

/* --- giving up --- */

static bool cancel_asked(struct fetches *f, struct fetch *fetch, const struct store_read *read, struct read_list *left)
{
    uint32_t i = 0;
    while (i < fetch->parts && fetch->read[i] != read)
        i++;
    if (fetch->state != FETCH_ASKED || i == fetch->parts)
        return false;
    if (fetch->waiting == 1) {
        slots_leave(f, fetch, left);
    } else {
        fetch->read[i] = NULL;
        fetch->waiting--;
    }
    return true;
}

bool fetch_cancel(struct fetches *f, struct store_read *read)
{
    struct read_list left = TAILQ_HEAD_INITIALIZER(left);
    bool found = false;
    pthread_mutex_lock(&f->lock);
    for (uint32_t slot = 0; slot < RING_IN && !found; slot++)
        found = cancel_asked(f, &f->fetch[slot], read, &left);
    for (uint32_t node = 0; node < f->nodes && f->waiting && !found; node++) {
        found = fair_remove(&f->peer[node].queue, read);
        f->waiting -= found;
    }
    fetches_unlock(f);
    return found;
}

static void give_up(struct fetches *f, struct fetch *fetch, struct read_list *left)
{
    slots_leave(f, fetch, left);
    atomic_fetch_add(&f->self->timeouts, 1);
}

/* Also end what was asked of this node later: a waiting loader thread would be missing for reads of the source. */
static void end_silent_node(struct fetches *f, uint32_t node, uint64_t since, uint64_t now, struct read_list *left)
{
    suspect(f, node, since, now);
    for (uint32_t slot = 0; slot < RING_IN; slot++)
        if (f->fetch[slot].state == FETCH_ASKED && f->fetch[slot].node == node)
            give_up(f, &f->fetch[slot], left);
    slots_expel(f, &f->peer[node], left);
}

static void end_silent(struct fetches *f, uint64_t now, struct read_list *left)
{
    uint64_t most = f->self->config.peer_timeout;
    for (uint32_t slot = 0; slot < RING_IN; slot++) {
        struct fetch *fetch = &f->fetch[slot];
        if (fetch->state != FETCH_ASKED || now - fetch->heard < most || now < fetch->heard)
            continue;
        give_up(f, fetch, left);
        const struct peer_record *peer = &f->peer[fetch->node].peer;
        uint64_t arrived = fetch->shared ? peer->reached : peer->heard;
        if (arrived <= fetch->heard && now >= fetch->asked + most)
            end_silent_node(f, fetch->node, fetch->heard, now, left);
    }
}

void fetch_tick(struct fetches *f, uint64_t now)
{
    struct read_list left = TAILQ_HEAD_INITIALIZER(left);
    pthread_mutex_lock(&f->lock);
    end_silent(f, now, &left);
    slots_expel_late(f, now, &left);
    fetches_unlock(f);
    give_back(f, &left, -ETIMEDOUT);
}

void fetch_end(struct fetches *f)
{
    struct read_list left = TAILQ_HEAD_INITIALIZER(left);
    pthread_mutex_lock(&f->lock);
    f->over = true;
    for (uint32_t slot = 0; slot < RING_IN; slot++)
        if (f->fetch[slot].state == FETCH_ASKED)
            slots_leave(f, &f->fetch[slot], &left);
    for (uint32_t node = 0; node < f->nodes; node++)
        slots_expel(f, &f->peer[node], &left);
    fetches_unlock(f);
    give_back(f, &left, -ENOTCONN);
}

void fetch_turn(struct fetches *f, struct world *world)
{
    pthread_mutex_lock(&f->lock);
    struct world *before = f->world;
    f->world = world_get(world);
    pthread_mutex_unlock(&f->lock);
    world_put(before);
}

enum peer_state fetch_peer_state(struct fetches *f, uint32_t node)
{
    LOCK_SCOPE(&f->lock);
    return f->peer[node].peer.state;
}

struct peer_times fetch_peer_times(struct fetches *f, uint32_t node)
{
    LOCK_SCOPE(&f->lock);
    return f->peer[node].times;
}
