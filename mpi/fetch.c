/* Fetches: what our server wants of others.
 *
 * A fetch belongs to the ring it came from: its slot is MPI's until the answer is there, and when the server has died
 * meanwhile the old ring stays mapped for it and nobody is told.
 *
 *   QUEUED ─▶ ASKED ─▶ ended */
#include "mpi/flight-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#define MILLISECOND UINT64_C(1000000)

void fetch_list_init(struct fetch_list *l)
{
    l->first = NULL;
    l->last = &l->first;
}

static void list_add(struct fetch_list *l, struct fetch *fetch)
{
    fetch->next = NULL;
    *l->last = fetch;
    l->last = &fetch->next;
}

static void list_remove(struct fetch_list *l, struct fetch *fetch)
{
    struct fetch **at = &l->first;
    while (*at != fetch)
        at = &(*at)->next;
    *at = fetch->next;
    if (!*at)
        l->last = at;
}

static void tell_fetched(struct flight *f, const struct fetch *fetch, int status, size_t n)
{
    struct ring_message m = fetch->asked;
    if (fetch->hold != f->hold)
        return;
    m.kind = RING_FETCHED;
    m.status = status;
    m.length = (uint32_t)n;
    if (status != -EAGAIN)
        f->busy_in[m.slot] = 0;
    link_push(f->c.link, &m);
}

static void fetch_end(struct flight *f, struct fetch *fetch, int status, size_t n)
{
    tell_fetched(f, fetch, status, n);
    hold_put(fetch->hold);
    free(fetch);
}

static void fetch_answered(void *user, int status, uint32_t from, size_t n)
{
    struct fetch *fetch = user;
    struct flight *f = fetch->flight;
    uint32_t node = fetch->asked.node;
    struct peer *peer = &f->peer[node];
    int failure;
    (void)from;
    if (status)
        status = -EBADMSG;
    else if (wire_failure_parse(ring_slot(&fetch->hold->ring, fetch->asked.slot), n, &failure) == 0)
        status = failure;
    list_remove(&peer->flying, fetch);
    peer->asked--;
    f->asked--;
    peer->ring_ms = RING_FIRST_MS;
    fetch_end(f, fetch, status, status ? 0 : n);
    fetch_start(f, node);
}

static void start_fetch(struct flight *f, struct fetch *fetch)
{
    const struct ring_message *asked = &fetch->asked;
    struct peer *peer = &f->peer[asked->node];
    struct wire_message m = wire_make(WIRE_FETCH);
    fetch->tag = f->next_tag;
    f->next_tag = f->next_tag >= f->c.last_tag ? TAG_ANSWER : f->next_tag + 1;
    int error = post_receive(f->c.post, ring_slot(&fetch->hold->ring, asked->slot), RING_SLOT, (int)asked->node,
                             fetch->tag, fetch_answered, fetch);
    if (error) {
        flight_fail(f, error, "receive an answer");
        fetch_end(f, fetch, -EHOSTDOWN, 0);
        return;
    }
    list_add(&peer->flying, fetch);
    if (peer->asked++ == 0)
        peer->ring_ms = RING_FIRST_MS;
    f->asked++;
    peer->ring_at = clock_now() + peer->ring_ms * MILLISECOND;
    m.tag = (uint32_t)fetch->tag;
    m.file = asked->file;
    m.value = asked->value;
    m.count = asked->count;
    flight_say(f, asked->node, &m, NULL);
}

void fetch_start(struct flight *f, uint32_t node)
{
    struct peer *peer = &f->peer[node];
    while (peer->queue.first && (peer->gone || peer->asked < MOST_IN_FLIGHT)) {
        struct fetch *fetch = peer->queue.first;
        list_remove(&peer->queue, fetch);
        if (peer->gone || fetch->hold != f->hold)
            fetch_end(f, fetch, -EHOSTDOWN, 0);
        else
            start_fetch(f, fetch);
    }
}

void fetch_take(struct flight *f, const struct ring_message *m)
{
    bool right = m->node < f->c.nodes && m->node != f->c.me && m->slot < RING_IN && !f->busy_in[m->slot] &&
                 m->count > 0 && m->count <= RING_VALUES && m->value <= UINT32_MAX - m->count;
    if (!right) {
        link_end(f->c.link, "it asks for what cannot be");
        return;
    }
    struct fetch *fetch = calloc(1, sizeof *fetch);
    if (!fetch) {
        flight_fail(f, -ENOMEM, "a fetch");
        return;
    }
    *fetch = (struct fetch){.flight = f, .hold = hold_get(f->hold), .asked = *m};
    f->busy_in[m->slot] = 1;
    list_add(&f->peer[m->node].queue, fetch);
    fetch_start(f, m->node);
}

static struct fetch *fetch_find(const struct peer *peer, uint32_t tag)
{
    struct fetch *fetch = peer->flying.first;
    while (fetch && (uint32_t)fetch->tag != tag)
        fetch = fetch->next;
    return fetch;
}

void fetch_wait(struct flight *f, uint32_t node, uint32_t tag)
{
    struct fetch *fetch = fetch_find(&f->peer[node], tag);
    f->peer[node].ring_at = UINT64_MAX;
    if (fetch)
        tell_fetched(f, fetch, -EAGAIN, 0);
}

void fetch_drop_queued(struct flight *f)
{
    for (uint32_t i = 0; i < f->c.nodes; i++)
        while (f->peer[i].queue.first) {
            struct fetch *fetch = f->peer[i].queue.first;
            list_remove(&f->peer[i].queue, fetch);
            fetch_end(f, fetch, -EHOSTDOWN, 0);
        }
}

void fetch_list_fini(struct fetch_list *l)
{
    while (l->first) {
        struct fetch *fetch = l->first;
        list_remove(l, fetch);
        hold_put(fetch->hold);
        free(fetch);
    }
}
