/* Asking other nodes.
 *
 * Threads: readers and loader threads ask, ring threads bring the answers, the time's thread ends what is silent, any
 * thread releases an answer. All is under `lock`; messages are sent, and the store called, without it.
 *
 *   FREE ──ask──▶ ASKED ──FETCHED──▶ HELD ──the answer is released──▶ FREE
 *                   │ silence
 *                   ▼
 *                 LEFT ──FETCHED──▶ FREE        its read went to the source; the courier may still write to the slot
 *
 *   state   read    number, node   the slot counts in
 *   FREE    NULL    -              fetches.free
 *   ASKED   waits   the fetch's    the node's slots
 *   LEFT    NULL    the fetch's    the node's slots and left, fetches.left
 *   HELD    NULL    -              nothing; an answer points into the slot, and has a reference to the link
 *
 * A pull is asked as a read is, of which the store knows nothing: its thread waits until it has ended, and then takes
 * what it wants out of the slot.
 *
 * What is fed yields: it has the slots that readers leave, as far as the node's, and all, are not nearly taken; after
 * eight others it has one all the same, for a loader may wait for it.
 *
 * Who is asked for what it neither holds nor owns says so (-ENOENT): then the one is asked that owns it now, where the
 * layout has turned meanwhile, else, once, who owned it before. */
#include "fs/world/fetch.h"

#include "fs/base/check.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"
#include "fs/store/loads.h"
#include "fs/world/receive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    PEER_FETCHES = 32,
    FED_FETCHES = PEER_FETCHES * 3 / 4, /* nothing is fed where a node has more in its hands, */
    KEPT_FREE = RING_IN / 4,            /* or fewer are free */
    AT_ONCE = 8,
    OVERTAKE_MS = 50,        /* a pull that waits longer is overtaken no more */
    MOST_LEFT = RING_IN / 2, /* where silent nodes have more of the slots, nobody waits for one */
};

struct peer_pull {
    struct store_read read; /* stands for it where it waits */
    struct ring_message question;
    pthread_cond_t ended;
    bool over; /* lock, as the rest: */
    int error;
    struct fetch *fetch; /* has the answer, of `length` bytes; NULL: there is none */
    uint32_t length;
};

struct fetch {
    enum { FETCH_FREE, FETCH_ASKED, FETCH_LEFT, FETCH_HELD } state;
    struct fetches *fetches;
    struct store_read *read;
    uint64_t number; /* the message's token */
    uint64_t asked;  /* when this slot was taken for it */
    uint64_t heard;  /* since when its read waits, or when the other node last said WAIT */
    uint32_t node;
};

/* A node that is asked. At most PEER_FETCHES slots are in its hands, so that one that is silent leaves some. */
struct asked_peer {
    struct peer_record peer;
    bool hungry;     /* in the queue of that name */
    int slots, left; /* asked or left; left */
    struct peer_times times;
    struct read_list waiting, fed; /* for slots */
    TAILQ_ENTRY(asked_peer) same_queue;
};

struct fetches {
    struct link *link;
    struct self *self;
    uint32_t nodes, me;

    pthread_mutex_t lock; /* all below */
    bool over;
    struct world *world; /* whose layout says who is asked */
    uint64_t number;     /* of the last fetch */
    uint64_t waiting;    /* reads that wait for slots */
    int yields;          /* slots that were given to others since one was fed; up to MOST_YIELDS */
    int free, left;      /* slots in these states */
    uint32_t free_slot[RING_IN];
    struct fetch fetch[RING_IN];
    struct asked_peer *peer;
    TAILQ_HEAD(, asked_peer) hungry; /* have reads that wait, and may have more slots */
};

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
    for (uint32_t node = 0; f->peer && node < f->nodes; node++) {
        TAILQ_INIT(&f->peer[node].waiting);
        TAILQ_INIT(&f->peer[node].fed);
    }
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

/* As the tables here and in peer.h say. */
static void fetches_check(const struct fetches *f)
{
#ifdef DEALFS_CHECKS
    int count[FETCH_HELD + 1] = {0}, slots = 0, left = 0;
    for (uint32_t slot = 0; slot < RING_IN; slot++) {
        const struct fetch *fetch = &f->fetch[slot];
        count[fetch->state]++;
        check((fetch->read != NULL) == (fetch->state == FETCH_ASKED));
        check(fetch->node < f->nodes && fetch->number <= f->number);
    }
    for (uint32_t node = 0; node < f->nodes; node++) {
        const struct asked_peer *p = &f->peer[node];
        check(peer_is_sound(&p->peer) && p->left <= p->slots && p->slots <= PEER_FETCHES);
        slots += p->slots;
        left += p->left;
    }
    check(count[FETCH_FREE] == f->free && count[FETCH_LEFT] == f->left && left == f->left);
    check(count[FETCH_ASKED] + count[FETCH_LEFT] == slots);
#else
    (void)f;
#endif
}

static void fetches_unlock(struct fetches *f)
{
    fetches_check(f);
    pthread_mutex_unlock(&f->lock);
}

/* Nodes. All with the lock. */

static const char *host_of(const struct fetches *f, uint32_t node)
{
    return layout_node(f->world->layout, node)->host;
}

static void suspect(struct fetches *f, uint32_t node, uint64_t now)
{
    struct peer_record *peer = &f->peer[node].peer;
    if (peer_suspect(peer, now))
        log_limited(LOG_LEVEL_WARNING, 5, "node %u (%s) is silent: not asked for %llu s", node, host_of(f, node),
                    (unsigned long long)(peer->pause / SECOND));
}

static struct asked_peer *peer_if_asked(struct fetches *f, uint32_t node, uint64_t now)
{
    return node < f->nodes && node != f->me && peer_may_be_asked(&f->peer[node].peer, now) ? &f->peer[node] : NULL;
}

static uint32_t owner_before(const struct fetches *f, uint32_t file, uint64_t offset)
{
    const struct world *w = f->world;
    return w->before ? layout_owner(w->before, w->group, extents_at(f->self->extents, file, offset)) : NO_OWNER;
}

/* The owner in this node's group, else in another one that can be asked. What has become this node's since the store
 * looked is with who owned it before. */
static struct asked_peer *choose_peer(struct fetches *f, const struct store_read *read, uint64_t now)
{
    const struct world *w = f->world;
    uint32_t groups = layout_groups(w->layout);
    if (read->pull)
        return peer_if_asked(f, read->pull->question.node, now);
    if (read->before)
        return peer_if_asked(f, owner_before(f, read->span.file, read->span.offset), now);
    uint64_t extent = extents_at(f->self->extents, read->span.file, read->span.offset);
    for (uint32_t i = 0; i < groups; i++) {
        uint32_t owner = layout_owner(w->layout, (w->group + i) % groups, extent);
        if (owner == f->me)
            owner = owner_before(f, read->span.file, read->span.offset);
        struct asked_peer *p = peer_if_asked(f, owner, now);
        if (p)
            return p;
    }
    return NULL;
}

static bool is_hungry(const struct asked_peer *p)
{
    bool waits = !TAILQ_EMPTY(&p->waiting) || !TAILQ_EMPTY(&p->fed);
    return waits && p->slots < PEER_FETCHES && p->peer.state == PEER_GOOD;
}

static void note_hungry(struct fetches *f, struct asked_peer *p)
{
    if (p->hungry || !is_hungry(p))
        return;
    p->hungry = true;
    TAILQ_INSERT_TAIL(&f->hungry, p, same_queue);
}

/* Reads before pulls; but a reader may wait for what is pulled, too. */
static void wait_for_slot(struct fetches *f, struct asked_peer *p, struct store_read *read)
{
    struct read_list *list = read->fed ? &p->fed : &p->waiting;
    struct store_read *last = TAILQ_LAST(list, read_list);
    while (!read->pull && last && last->pull && read->asked - last->asked < OVERTAKE_MS * MILLISECOND)
        last = TAILQ_PREV(last, read_list, parked);
    if (last)
        TAILQ_INSERT_AFTER(list, last, read, parked);
    else
        TAILQ_INSERT_HEAD(list, read, parked);
    f->waiting++;
    note_hungry(f, p);
}

static void expel_waiting(struct fetches *f, struct asked_peer *p, struct read_list *expelled)
{
    struct store_read *read;
    for (; (read = read_list_take(&p->waiting)) || (read = read_list_take(&p->fed)); f->waiting--)
        TAILQ_INSERT_TAIL(expelled, read, parked);
}

static void lose(struct fetches *f, uint32_t node, struct read_list *expelled)
{
    if (peer_lose(&f->peer[node].peer))
        log_limited(LOG_LEVEL_WARNING, 5, "node %u (%s) is gone: its share is read from the source", node,
                    host_of(f, node));
    expel_waiting(f, &f->peer[node], expelled);
}

/* Slots. All with the lock. */

/* When a read that waits, if only for a slot, last had a reason to wait on. */
static uint64_t heard_since(const struct asked_peer *p, const struct store_read *read)
{
    return p->peer.heard > read->asked ? p->peer.heard : read->asked;
}

static bool may_feed(const struct fetches *f, const struct asked_peer *p)
{
    return f->yields >= MOST_YIELDS || (p->slots < FED_FETCHES && f->free > KEPT_FREE);
}

/* Without waiting. */
static bool has_slot(const struct fetches *f, const struct asked_peer *p, const struct store_read *read)
{
    if (!f->free || p->slots >= PEER_FETCHES || !TAILQ_EMPTY(&p->waiting))
        return false;
    return !read->fed || (TAILQ_EMPTY(&p->fed) && may_feed(f, p));
}

/* Which list of a node the next slot is for; NULL: none may have it now. */
static struct read_list *next_list(const struct fetches *f, struct asked_peer *p)
{
    bool others = !TAILQ_EMPTY(&p->waiting);
    if (!TAILQ_EMPTY(&p->fed) && (f->yields >= MOST_YIELDS || (!others && may_feed(f, p))))
        return &p->fed;
    return others ? &p->waiting : NULL;
}

/* Put a read into a slot; there is room. */
static void occupy_slot(struct fetches *f, struct asked_peer *p, struct store_read *read, uint64_t now,
                        struct ring_message *m)
{
    uint32_t slot = f->free_slot[--f->free];
    struct fetch *fetch = &f->fetch[slot];
    fetch->state = FETCH_ASKED;
    fetch->read = read;
    fetch->number = ++f->number;
    fetch->asked = now;
    fetch->heard = heard_since(p, read);
    fetch->node = (uint32_t)(p - f->peer);
    p->slots++;
    f->yields = read->fed ? 0 : f->yields + (f->yields < MOST_YIELDS);
    peer_asked(&p->peer);
    if (read->pull) {
        *m = read->pull->question;
    } else {
        uint32_t flags = (read->before ? FETCH_BEFORE : 0) | (read->fed ? FETCH_FED : 0);
        *m = (struct ring_message){.file = read->span.file, .flags = flags};
        receive_values_of(&read->span, &m->value, &m->count);
    }
    m->kind = RING_FETCH;
    m->node = read->peer = fetch->node;
    m->slot = slot;
    m->token = fetch->number;
}

static void vacate_slot(struct fetches *f, struct fetch *fetch)
{
    if (fetch->state == FETCH_LEFT) {
        f->left--;
        f->peer[fetch->node].left--;
    }
    fetch->state = FETCH_FREE;
    fetch->read = NULL;
    f->free_slot[f->free++] = (uint32_t)(fetch - f->fetch);
}

static void leave_slot(struct fetches *f, struct fetch *fetch, struct read_list *left)
{
    f->left++;
    f->peer[fetch->node].left++;
    TAILQ_INSERT_TAIL(left, fetch->read, parked);
    fetch->read = NULL;
    fetch->state = FETCH_LEFT;
}

/* For slots of which most come back: not those of a node that never answers. */
static bool may_wait(const struct fetches *f, const struct asked_peer *p)
{
    return p->peer.state == PEER_GOOD && p->left <= PEER_FETCHES / 2 && (f->free || f->left <= MOST_LEFT);
}

/* Out of the queue: the first that may have a slot, and those before it that need none. */
static struct asked_peer *next_hungry(struct fetches *f, struct read_list **list)
{
    struct asked_peer *p = TAILQ_FIRST(&f->hungry), *next;
    for (*list = NULL; p && !*list; p = *list ? p : next) {
        next = TAILQ_NEXT(p, same_queue);
        bool hungry = is_hungry(p);
        if (hungry && !(*list = next_list(f, p)))
            continue;
        TAILQ_REMOVE(&f->hungry, p, same_queue);
        p->hungry = false;
    }
    return p;
}

/* Free slots go to the nodes whose reads wait, in turn. Returns how many messages there are to send. */
static int feed_hungry(struct fetches *f, struct ring_message message[AT_ONCE])
{
    struct asked_peer *p;
    struct read_list *list;
    int n = 0;
    while (n < AT_ONCE && f->free && (p = next_hungry(f, &list))) {
        struct store_read *read = read_list_take(list);
        f->waiting--;
        occupy_slot(f, p, read, clock_now(), &message[n++]);
        note_hungry(f, p);
    }
    return n;
}

/* Asking. */

static bool is_asked(const struct fetch *fetch, uint64_t number)
{
    return fetch->number == number && (fetch->state == FETCH_ASKED || fetch->state == FETCH_LEFT);
}

/* To the store, or the thread that waits. */
static void end_read(struct fetches *f, struct store_read *read, int error)
{
    struct peer_pull *pull = read->pull;
    if (!pull) {
        store_fetched(f->self->store, read, error);
        return;
    }
    pthread_mutex_lock(&f->lock);
    pull->error = error;
    pull->over = true;
    pthread_cond_signal(&pull->ended);
    pthread_mutex_unlock(&f->lock);
}

/* A message that the ring has no room for was never heard of by the courier. */
static void ask_courier(struct fetches *f, const struct ring_message *m)
{
    int error = link_try(f->link, m);
    if (!error)
        return;
    struct fetch *fetch = &f->fetch[m->slot];
    struct store_read *read = NULL;
    pthread_mutex_lock(&f->lock);
    if (is_asked(fetch, m->token)) {
        struct asked_peer *p = &f->peer[fetch->node];
        read = fetch->read;
        p->slots--;
        p->peer.probing = false;
        vacate_slot(f, fetch);
        note_hungry(f, p);
    }
    fetches_unlock(f);
    if (read)
        end_read(f, read, error);
}

/* Once something was given back. */
static void feed_all(struct fetches *f)
{
    struct ring_message message[AT_ONCE];
    int n;
    do {
        pthread_mutex_lock(&f->lock);
        n = f->over ? 0 : feed_hungry(f, message);
        fetches_unlock(f);
        for (int i = 0; i < n; i++)
            ask_courier(f, &message[i]);
    } while (n == AT_ONCE);
}

int fetch_ask(struct fetches *f, struct store_read *read)
{
    struct ring_message message = {0};
    uint64_t now = read->asked = clock_now();
    pthread_mutex_lock(&f->lock);
    struct asked_peer *p = f->over ? NULL : choose_peer(f, read, now);
    if (p && has_slot(f, p, read)) {
        occupy_slot(f, p, read, now, &message);
    } else if (p && may_wait(f, p)) {
        wait_for_slot(f, p, read);
    } else {
        p = NULL;
    }
    fetches_unlock(f);
    if (message.kind)
        ask_courier(f, &message);
    return p ? -EINPROGRESS : -EHOSTUNREACH;
}

/* Of several groups another one may have what a lost node had. Who says that it has it not is not asked again. */
static bool has_another(struct fetches *f, struct store_read *read, int error)
{
    if (read->pull || (error != -EHOSTDOWN && error != -ENOENT))
        return false;
    pthread_mutex_lock(&f->lock);
    uint32_t asked = read->peer, before = owner_before(f, read->span.file, read->span.offset);
    const struct asked_peer *p = choose_peer(f, read, clock_now());
    bool another = p && (uint32_t)(p - f->peer) != asked;
    if (error == -ENOENT && !another && !read->before && before != asked)
        another = read->before = before < f->nodes && before != f->me;
    pthread_mutex_unlock(&f->lock);
    return another;
}

/* To the source where nobody else has it. */
static void give_back(struct fetches *f, struct read_list *reads, int error)
{
    for (struct store_read *read; (read = read_list_take(reads));)
        if (!has_another(f, read, error) || fetch_ask(f, read) != -EINPROGRESS)
            end_read(f, read, error);
}

/* Answers. */

static void release_slot(void *object)
{
    struct fetch *fetch = object;
    struct fetches *f = fetch->fetches;
    pthread_mutex_lock(&f->lock);
    vacate_slot(f, fetch);
    bool more = !TAILQ_EMPTY(&f->hungry);
    fetches_unlock(f);
    if (more)
        feed_all(f);
    link_put(f->link);
}

static void count_bad(struct fetches *f, uint32_t node)
{
    atomic_fetch_add(&f->self->bad, 1);
    pthread_mutex_lock(&f->lock);
    log_limited(LOG_LEVEL_WARNING, 5, "node %u (%s) sent what does not verify: read from the source", node,
                host_of(f, node));
    pthread_mutex_unlock(&f->lock);
}

static const void *slot_of(const struct fetches *f, const struct fetch *fetch)
{
    return ring_slot(&f->link->ring, (uint32_t)(fetch - f->fetch));
}

/* The bytes stay in the slot for as long as the answer lasts, where they are not packed; those of a pull until its
 * thread has taken them. */
static void complete_read(struct fetches *f, struct fetch *fetch, struct store_read *read, uint32_t length)
{
    uint32_t node = fetch->node;
    bool in_slot = false;
    if (read->pull) {
        read->pull->fetch = fetch;
        read->pull->length = length;
        end_read(f, read, 0);
        return;
    }
    int error = receive_payload(f->self, slot_of(f, fetch), length, read, &in_slot);
    if (in_slot)
        answer_pin(&read->answer, release_slot, fetch);
    else
        release_slot(fetch);
    if (error == -EBADMSG)
        count_bad(f, node);
    store_fetched(f->self->store, read, error);
}

/* A fetch that the courier has ended, with the lock: the read whose answer is in the slot, or NULL. */
static struct store_read *end_fetch(struct fetches *f, struct fetch *fetch, int status, struct read_list *back)
{
    struct asked_peer *p = &f->peer[fetch->node];
    struct store_read *read = fetch->read;
    p->slots--;
    if (read && !status) {
        fetch->state = FETCH_HELD;
        fetch->read = NULL;
        link_get(f->link);
    } else {
        if (read)
            TAILQ_INSERT_TAIL(back, read, parked);
        vacate_slot(f, fetch);
        read = NULL;
    }
    if (status == -EHOSTDOWN)
        lose(f, fetch->node, back);
    note_hungry(f, p);
    return read;
}

int fetch_answered(struct fetches *f, const struct ring_message *m)
{
    if (m->slot >= RING_IN || m->status > 0 || m->length > RING_SLOT)
        return -EBADMSG;
    struct fetch *fetch = &f->fetch[m->slot];
    struct store_read *read = NULL;
    struct read_list back = TAILQ_HEAD_INITIALIZER(back);
    uint64_t now = clock_now();
    pthread_mutex_lock(&f->lock);
    bool known = is_asked(fetch, m->token);
    if (known && m->status != -EHOSTDOWN)
        peer_heard(&f->peer[fetch->node].peer, now);
    if (known && m->status == 0)
        peer_answered(&f->peer[fetch->node].times, now - fetch->asked);
    if (known && m->status == -EAGAIN)
        fetch->heard = now;
    else if (known)
        read = end_fetch(f, fetch, m->status, &back);
    bool more = !TAILQ_EMPTY(&f->hungry);
    fetches_unlock(f);
    if (!known)
        log_limited(LOG_LEVEL_WARNING, 1, "the courier answers a fetch that is over");
    if (more)
        feed_all(f);
    if (read)
        complete_read(f, fetch, read, m->length);
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

/* Pulls. */

/* 0: the answer is in pull->fetch's slot, until pull_end. */
static int pull_wait(struct fetches *f, struct peer_pull *pull)
{
    pull->read.pull = pull;
    cond_init(&pull->ended);
    if (fetch_ask(f, &pull->read) != -EINPROGRESS)
        return -EHOSTUNREACH;
    pthread_mutex_lock(&f->lock);
    while (!pull->over)
        pthread_cond_wait(&pull->ended, &f->lock);
    pthread_mutex_unlock(&f->lock);
    return pull->error;
}

static void pull_end(struct fetches *f, struct peer_pull *pull, int error)
{
    uint32_t node = pull->question.node;
    if (pull->fetch)
        release_slot(pull->fetch);
    if (error == -EBADMSG)
        count_bad(f, node);
    pthread_cond_destroy(&pull->ended);
}

int fetch_before(struct fetches *f, uint32_t file, uint32_t value, uint32_t count, stored_take take, void *to)
{
    struct peer_pull pull = {.question = {.file = file, .value = value, .count = count, .flags = FETCH_BEFORE}};
    struct payload_value values[RING_VALUES];
    pthread_mutex_lock(&f->lock);
    uint32_t node = pull.question.node = owner_before(f, file, (uint64_t)value * VALUE_BYTES);
    pthread_mutex_unlock(&f->lock);
    if (node >= f->nodes || node == f->me)
        return -ENOENT;
    int error = pull_wait(f, &pull);
    if (!error)
        error = payload_parse(slot_of(f, pull.fetch), pull.length, file, value, count, values);
    for (uint32_t i = 0; i < count && !error; i++)
        error = take(to, i, values[i].bytes, values[i].length);
    pull_end(f, &pull, error);
    return error;
}

int fetch_stored(struct fetches *f, uint32_t node, uint64_t first, uint32_t count, uint64_t k, uint64_t *bits)
{
    struct peer_pull pull = {.question = {.node = node,
                                          .file = (uint32_t)first,
                                          .value = (uint32_t)(first >> 32),
                                          .count = count,
                                          .flags = FETCH_STORED}};
    int error = pull_wait(f, &pull);
    const uint64_t *words = error ? NULL : payload_stored_parse(slot_of(f, pull.fetch), pull.length, first, count, k);
    if (words)
        memcpy(bits, words, (count + 63) / 64 * sizeof *words);
    else if (!error)
        error = -EAGAIN; /* it has not turned yet, or has again */
    pull_end(f, &pull, error);
    return error;
}

int fetch_blob(struct fetches *f, uint32_t node, uint64_t key, uint32_t piece, void *to, uint64_t *length)
{
    struct peer_pull pull = {.question = {.node = node,
                                          .file = (uint32_t)key,
                                          .value = (uint32_t)(key >> 32),
                                          .count = piece + 1,
                                          .flags = FETCH_BLOB}};
    int error = pull_wait(f, &pull);
    const struct payload_blob *p = error ? NULL : payload_blob_parse(slot_of(f, pull.fetch), pull.length, key, piece);
    if (!error && !p)
        error = -EBADMSG;
    if (!error && p->length == 0)
        error = -ENOENT;
    if (!error) {
        memcpy(to, p->byte, pull.length - sizeof *p);
        *length = p->length;
    }
    pull_end(f, &pull, error);
    return error;
}

/* Giving up. */

bool fetch_cancel(struct fetches *f, struct store_read *read)
{
    struct read_list left = TAILQ_HEAD_INITIALIZER(left);
    bool found = false;
    pthread_mutex_lock(&f->lock);
    for (uint32_t slot = 0; slot < RING_IN && !found; slot++) {
        found = f->fetch[slot].read == read;
        if (found)
            leave_slot(f, &f->fetch[slot], &left);
    }
    for (uint32_t node = 0; node < f->nodes && f->waiting && !found; node++) {
        found = read_list_remove(read->fed ? &f->peer[node].fed : &f->peer[node].waiting, read);
        f->waiting -= found;
    }
    fetches_unlock(f);
    return found;
}

static void end_silent(struct fetches *f, uint64_t now, struct read_list *left)
{
    uint64_t most = f->self->config.peer_timeout;
    for (uint32_t slot = 0; slot < RING_IN; slot++) {
        struct fetch *fetch = &f->fetch[slot];
        if (fetch->state != FETCH_ASKED || now - fetch->heard < most || now < fetch->heard)
            continue;
        struct asked_peer *p = &f->peer[fetch->node];
        leave_slot(f, fetch, left);
        atomic_fetch_add(&f->self->timeouts, 1);
        if (p->peer.heard > fetch->heard || now < fetch->asked + most)
            continue;
        suspect(f, fetch->node, now);
        expel_waiting(f, p, left);
    }
}

static void expel_late_of(struct fetches *f, const struct asked_peer *p, struct read_list *list, uint64_t now,
                          struct read_list *left)
{
    for (struct store_read *read = TAILQ_FIRST(list), *next; read; read = next) {
        uint64_t since = heard_since(p, read);
        next = TAILQ_NEXT(read, parked);
        if (now <= since || now - since < f->self->config.peer_timeout)
            continue;
        TAILQ_REMOVE(list, read, parked);
        TAILQ_INSERT_TAIL(left, read, parked);
        f->waiting--;
    }
}

/* Reads that wait for a slot of a node that answers others wait on; those that get none from anybody do not. */
static void expel_late(struct fetches *f, uint64_t now, struct read_list *left)
{
    for (uint32_t node = 0; node < f->nodes && f->waiting; node++) {
        struct asked_peer *p = &f->peer[node];
        expel_late_of(f, p, &p->waiting, now, left);
        expel_late_of(f, p, &p->fed, now, left);
    }
}

void fetch_tick(struct fetches *f, uint64_t now)
{
    struct read_list left = TAILQ_HEAD_INITIALIZER(left);
    pthread_mutex_lock(&f->lock);
    end_silent(f, now, &left);
    expel_late(f, now, &left);
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
            leave_slot(f, &f->fetch[slot], &left);
    for (uint32_t node = 0; node < f->nodes; node++)
        expel_waiting(f, &f->peer[node], &left);
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
    pthread_mutex_lock(&f->lock);
    enum peer_state state = f->peer[node].peer.state;
    pthread_mutex_unlock(&f->lock);
    return state;
}

struct peer_times fetch_peer_times(struct fetches *f, uint32_t node)
{
    pthread_mutex_lock(&f->lock);
    struct peer_times times = f->peer[node].times;
    pthread_mutex_unlock(&f->lock);
    return times;
}
