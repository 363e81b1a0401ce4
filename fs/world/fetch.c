/* Asking other nodes.
 *
 * Threads: readers and loader threads ask, ring threads bring the answers, the time's thread ends what is silent, any
 * thread releases an answer. All is under `lock`; messages are pushed, and the store called, without it.
 *
 * A node is silent when nothing at all has come from it since a fetch was asked, or last heard of, for peer_timeout. (A
 * read that waited for its slot first ends sooner, which says nothing about the node.) A silent node is suspected, and
 * not asked until a pause is over, which doubles each time; after it one fetch tries. */
#include "fs/world/inside.h"

#include "fs/base/file.h"
#include "fs/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
#define FIRST_PAUSE (2 * SECOND)
#define LONGEST_PAUSE (60 * SECOND)
enum {
    PEER_FETCHES = 32,
    AT_ONCE = 8,
    MOST_LEFT = RING_IN / 2, /* where silent nodes have more of the slots, nobody waits for one */
};

int fetches_init(struct link *l)
{
    struct fetches *f = &l->fetches;
    pthread_mutex_init(&f->lock, NULL);
    TAILQ_INIT(&f->hungry);
    f->nodes = l->world->nodes;
    f->record = calloc(f->nodes, sizeof *f->record);
    for (uint32_t slot = 0; slot < RING_IN; slot++) {
        f->fetch[slot].link = l;
        f->free_slot[f->free++] = RING_IN - 1 - slot;
    }
    return f->record ? 0 : -ENOMEM;
}

void fetches_fini(struct link *l)
{
    free(l->fetches.record);
    pthread_mutex_destroy(&l->fetches.lock);
}

/* Nodes. */

static void suspect(struct link *l, struct record *r, uint64_t now)
{
    if (r->state == PEER_LOST || (r->state == PEER_SUSPECT && !r->probing))
        return;
    r->pause = !r->pause ? FIRST_PAUSE : 2 * r->pause < LONGEST_PAUSE ? 2 * r->pause : LONGEST_PAUSE;
    r->state = PEER_SUSPECT;
    r->probing = false;
    r->until = now + r->pause;
    uint32_t node = (uint32_t)(r - l->fetches.record);
    log_limited(LOG_LEVEL_WARNING, 5, "node %u (%s) is silent: not asked for %llu s", node,
                directory_node(l->world->directory, node)->host, (unsigned long long)(r->pause / SECOND));
}

static void lose(struct link *l, struct record *r)
{
    if (r->state == PEER_LOST)
        return;
    r->state = PEER_LOST;
    r->probing = false;
    uint32_t node = (uint32_t)(r - l->fetches.record);
    log_limited(LOG_LEVEL_WARNING, 5, "node %u (%s) is gone: its share is read from the source", node,
                directory_node(l->world->directory, node)->host);
}

static void hear(struct record *r, uint64_t now)
{
    r->heard = now;
    r->probing = false;
    r->pause = 0;
    if (r->state == PEER_SUSPECT)
        r->state = PEER_GOOD;
}

static bool may_ask(const struct record *r, uint64_t now)
{
    return r->state == PEER_GOOD || (r->state == PEER_SUSPECT && !r->probing && now >= r->until);
}

/* The owner in this node's group, else in another one that can be asked. */
static struct record *choose(struct link *l, const struct world *w, const struct store_read *read, uint64_t now)
{
    uint64_t extent = extents_at(l->peers->extents, read->span.file, read->span.offset);
    for (uint32_t i = 0; i < w->groups; i++) {
        uint32_t node = directory_owner(w->directory, (w->group + i) % w->groups, extent);
        if (node < w->nodes && node != w->me && may_ask(&l->fetches.record[node], now))
            return &l->fetches.record[node];
    }
    return NULL;
}

/* Slots. */

static bool has_room(const struct fetches *f, const struct record *r)
{
    return f->free && r->slots < PEER_FETCHES;
}

/* Put a read into a slot; there is room. It has waited since `since`, if only for the slot. */
static void occupy(struct link *l, struct record *r, struct store_read *read, uint64_t since, uint64_t now,
                   struct ring_message *m)
{
    struct fetches *f = &l->fetches;
    const struct span *span = &read->span;
    uint32_t slot = f->free_slot[--f->free], first = (uint32_t)(span->offset / VALUE_BYTES);
    struct fetch *fetch = &f->fetch[slot];
    fetch->state = FETCH_ASKED;
    fetch->read = read;
    fetch->number = ++f->number;
    fetch->asked = now;
    fetch->heard = since;
    fetch->node = (uint32_t)(r - f->record);
    fetch->file = span->file;
    fetch->value = first;
    fetch->count = (uint32_t)((span->offset + span->length - 1) / VALUE_BYTES) - first + 1;
    r->slots++;
    r->probing = r->state == PEER_SUSPECT;
    *m = (struct ring_message){
        .kind = RING_FETCH,
        .node = fetch->node,
        .slot = slot,
        .token = fetch->number,
        .file = fetch->file,
        .value = first,
        .count = fetch->count,
    };
}

static void vacate(struct fetches *f, struct fetch *fetch)
{
    if (fetch->state == FETCH_LEFT) {
        f->left--;
        f->record[fetch->node].left--;
    }
    fetch->state = FETCH_FREE;
    fetch->read = NULL;
    f->free_slot[f->free++] = (uint32_t)(fetch - f->fetch);
}

/* For slots of which most come back: not those of a node that never answers. */
static bool may_wait(const struct fetches *f, const struct record *r)
{
    return r->state == PEER_GOOD && r->left <= PEER_FETCHES / 2 && (f->free || f->left <= MOST_LEFT);
}

static void be_hungry(struct fetches *f, struct record *r)
{
    if (r->hungry || !r->waiting.first || r->slots >= PEER_FETCHES)
        return;
    r->hungry = true;
    TAILQ_INSERT_TAIL(&f->hungry, r, same_queue);
}

/* When a read that waits for a slot last had a reason to wait on. */
static uint64_t heard_since(const struct record *r, const struct store_read *read)
{
    return r->heard > read->asked ? r->heard : read->asked;
}

/* Slots that are free go to the nodes whose reads wait, in turn. Returns how many messages there are to push. */
static int feed(struct link *l, struct ring_message *message, int most)
{
    struct fetches *f = &l->fetches;
    struct record *r;
    int n = 0;
    while (n < most && f->free && (r = TAILQ_FIRST(&f->hungry))) {
        TAILQ_REMOVE(&f->hungry, r, same_queue);
        r->hungry = false;
        if (r->slots >= PEER_FETCHES || r->state != PEER_GOOD || !r->waiting.first)
            continue;
        struct store_read *read = read_list_take(&r->waiting);
        f->waiting--;
        occupy(l, r, read, heard_since(r, read), clock_now(), &message[n++]);
        be_hungry(f, r);
    }
    return n;
}

/* A message that the ring has no room for was never heard of by the courier. */
static void ask_courier(struct link *l, const struct ring_message *m)
{
    int error = link_try(l, m);
    if (!error)
        return;
    struct fetches *f = &l->fetches;
    struct fetch *fetch = &f->fetch[m->slot];
    pthread_mutex_lock(&f->lock);
    struct store_read *read = NULL;
    if (fetch->number == m->token && (fetch->state == FETCH_ASKED || fetch->state == FETCH_LEFT)) {
        struct record *r = &f->record[fetch->node];
        read = fetch->read;
        r->slots--;
        r->probing = false;
        vacate(f, fetch);
        be_hungry(f, r);
    }
    pthread_mutex_unlock(&f->lock);
    if (read)
        store_fetched(l->peers->store, read, error);
}

/* Once something was given back. */
static void go_on(struct link *l)
{
    struct ring_message message[AT_ONCE];
    int n;
    do {
        pthread_mutex_lock(&l->fetches.lock);
        n = l->fetches.over ? 0 : feed(l, message, AT_ONCE);
        pthread_mutex_unlock(&l->fetches.lock);
        for (int i = 0; i < n; i++)
            ask_courier(l, &message[i]);
    } while (n == AT_ONCE);
}

static void go_to_source(struct link *l, struct read_list *reads, int error)
{
    for (struct store_read *read; (read = read_list_take(reads));)
        store_fetched(l->peers->store, read, error);
}

static void expel_waiting(struct fetches *f, struct record *r, struct read_list *expelled)
{
    for (struct store_read *read; (read = read_list_take(&r->waiting)); f->waiting--)
        read_list_add(expelled, read);
}

int fetch_ask(struct link *l, struct store_read *read)
{
    struct fetches *f = &l->fetches;
    struct ring_message message = {0};
    uint64_t now = clock_now();
    struct world *w = peers_world(l->peers); /* the link's, with the directory of now */
    pthread_mutex_lock(&f->lock);
    struct record *r = f->over ? NULL : choose(l, w, read, now);
    if (r && has_room(f, r) && !r->waiting.first) {
        occupy(l, r, read, now, now, &message);
    } else if (r && may_wait(f, r)) {
        read->asked = now;
        read_list_add(&r->waiting, read);
        f->waiting++;
        be_hungry(f, r);
    } else {
        r = NULL;
    }
    pthread_mutex_unlock(&f->lock);
    world_put(w);
    if (message.kind)
        ask_courier(l, &message);
    return r ? -EINPROGRESS : -EHOSTUNREACH;
}

/* Answers. */

void fetch_release(void *object)
{
    struct fetch *fetch = object;
    struct link *l = fetch->link;
    struct fetches *f = &l->fetches;
    pthread_mutex_lock(&f->lock);
    vacate(f, fetch);
    bool more = !TAILQ_EMPTY(&f->hungry);
    pthread_mutex_unlock(&f->lock);
    if (more)
        go_on(l);
    link_put(l);
}

static void complete(struct link *l, struct fetch *fetch, struct store_read *read, uint32_t length)
{
    uint32_t node = fetch->node;
    int error = fetch_open(l, fetch, read, length);
    if (error == -EBADMSG) {
        atomic_fetch_add(&l->peers->bad, 1);
        log_limited(LOG_LEVEL_WARNING, 5, "node %u (%s) sent what does not verify: read from the source", node,
                    directory_node(l->world->directory, node)->host);
    }
    store_fetched(l->peers->store, read, error);
}

/* What becomes of a fetch that the courier has ended. With the lock. */
static struct store_read *end_fetch(struct link *l, struct fetch *fetch, int status, struct read_list *expelled)
{
    struct fetches *f = &l->fetches;
    struct record *r = &f->record[fetch->node];
    struct store_read *read = fetch->read;
    r->slots--;
    if (status == -EHOSTDOWN) {
        lose(l, r);
        expel_waiting(f, r, expelled);
    }
    if (read && !status) {
        fetch->state = FETCH_HELD;
        fetch->read = NULL;
        link_get(l);
    } else {
        vacate(f, fetch);
    }
    be_hungry(f, r);
    return read;
}

/* Of several groups another one may have it. */
static void try_elsewhere(struct link *l, struct store_read *read, int error)
{
    if (error != -EHOSTDOWN || fetch_ask(l, read) != -EINPROGRESS)
        store_fetched(l->peers->store, read, error);
}

int fetch_answered(struct link *l, const struct ring_message *m)
{
    struct fetches *f = &l->fetches;
    if (m->slot >= RING_IN || m->status > 0 || m->length > RING_SLOT)
        return -EBADMSG;
    struct fetch *fetch = &f->fetch[m->slot];
    struct store_read *read = NULL;
    struct read_list expelled = {0};
    uint64_t now = clock_now();
    pthread_mutex_lock(&f->lock);
    bool known = fetch->number == m->token && (fetch->state == FETCH_ASKED || fetch->state == FETCH_LEFT);
    if (known && m->status != -EHOSTDOWN)
        hear(&f->record[fetch->node], now);
    if (known && m->status == -EAGAIN)
        fetch->heard = now;
    else if (known)
        read = end_fetch(l, fetch, m->status, &expelled);
    bool more = !TAILQ_EMPTY(&f->hungry);
    pthread_mutex_unlock(&f->lock);
    if (!known)
        log_limited(LOG_LEVEL_WARNING, 1, "the courier answers a fetch that is over");
    if (more)
        go_on(l);
    if (read && !m->status)
        complete(l, fetch, read, m->length);
    else if (read)
        try_elsewhere(l, read, m->status);
    for (struct store_read *one; (one = read_list_take(&expelled));)
        try_elsewhere(l, one, -EHOSTDOWN);
    return 0;
}

int fetch_lost(struct link *l, uint32_t node)
{
    struct fetches *f = &l->fetches;
    struct read_list expelled = {0};
    if (node >= f->nodes || node == l->world->me)
        return -EBADMSG;
    pthread_mutex_lock(&f->lock);
    lose(l, &f->record[node]);
    expel_waiting(f, &f->record[node], &expelled);
    pthread_mutex_unlock(&f->lock);
    for (struct store_read *one; (one = read_list_take(&expelled));)
        try_elsewhere(l, one, -EHOSTDOWN);
    return 0;
}

/* Time, and the end. */

static void leave_slot(struct fetches *f, struct fetch *fetch, struct read_list *left)
{
    f->left++;
    f->record[fetch->node].left++;
    read_list_add(left, fetch->read);
    fetch->read = NULL;
    fetch->state = FETCH_LEFT;
}

static int end_silent(struct link *l, uint64_t now, struct read_list *left)
{
    struct fetches *f = &l->fetches;
    uint64_t most = l->peers->config.peer_timeout;
    int count = 0;
    for (uint32_t slot = 0; slot < RING_IN; slot++) {
        struct fetch *fetch = &f->fetch[slot];
        if (fetch->state != FETCH_ASKED || now - fetch->heard < most || now < fetch->heard)
            continue;
        struct record *r = &f->record[fetch->node];
        leave_slot(f, fetch, left);
        count++;
        if (r->heard > fetch->heard || now < fetch->asked + most)
            continue;
        suspect(l, r, now);
        expel_waiting(f, r, left);
    }
    return count;
}

/* Reads that wait for a slot of a node that answers others wait on; those that get none from anybody do not. */
static void expel_late(struct fetches *f, uint64_t now, uint64_t most, struct read_list *left)
{
    for (uint32_t node = 0; node < f->nodes && f->waiting; node++) {
        struct record *r = &f->record[node];
        struct read_list stay = {0};
        for (struct store_read *read; (read = read_list_take(&r->waiting));) {
            uint64_t since = heard_since(r, read);
            bool late = now > since && now - since >= most;
            f->waiting -= late;
            read_list_add(late ? left : &stay, read);
        }
        r->waiting = stay;
    }
}

void fetch_tick(struct link *l, uint64_t now)
{
    struct fetches *f = &l->fetches;
    struct read_list left = {0};
    pthread_mutex_lock(&f->lock);
    int silent = end_silent(l, now, &left);
    if (f->waiting)
        expel_late(f, now, l->peers->config.peer_timeout, &left);
    pthread_mutex_unlock(&f->lock);
    atomic_fetch_add(&l->peers->timeouts, (uint64_t)silent);
    go_to_source(l, &left, -ETIMEDOUT);
}

void fetch_end(struct link *l)
{
    struct fetches *f = &l->fetches;
    struct read_list left = {0};
    pthread_mutex_lock(&f->lock);
    f->over = true;
    for (uint32_t slot = 0; slot < RING_IN; slot++)
        if (f->fetch[slot].state == FETCH_ASKED)
            leave_slot(f, &f->fetch[slot], &left);
    for (uint32_t node = 0; node < f->nodes; node++)
        expel_waiting(f, &f->record[node], &left);
    pthread_mutex_unlock(&f->lock);
    go_to_source(l, &left, -ENOTCONN);
}

enum peer_state fetch_state(struct link *l, uint32_t node)
{
    struct fetches *f = &l->fetches;
    pthread_mutex_lock(&f->lock);
    enum peer_state state = f->record[node].state;
    pthread_mutex_unlock(&f->lock);
    return state;
}
