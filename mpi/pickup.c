#include "mpi/pickup.h"

#include "fs/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum {
    RING_FIRST_MS = 1, /* pause before a silent peer is rung again; doubled each time, up to: */
    RING_LAST_MS = 128,
};

struct pickup {
    TAILQ_ENTRY(pickup) next;
    struct pickups *all;
    struct hold *hold;
    struct ring_message asked; /* as received */
    int tag;                   /* in state ASKED */
    struct fetch_part part[];  /* of FETCH_MANY */
};
TAILQ_HEAD(pickup_list, pickup);

struct pickup_peer {
    struct pickup_list queued, asked;
    unsigned count;   /* of `asked` */
    uint64_t ring_at; /* when to ring again if there is no answer */
    unsigned ring_ms;
};

struct pickups {
    struct mail *mail;
    struct home *home;
    int next_tag, last_tag;
    unsigned asked;
    uint8_t busy[RING_IN]; /* slots of the current ring that are not the server's */
    struct pickup_peer peer[];
};

int pickups_create(struct mail *mail, struct home *home, int last_tag, struct pickups **pickups)
{
    struct pickups *p = calloc(1, sizeof *p + mail->nodes * sizeof *p->peer);
    if (!p)
        return -ENOMEM;
    p->mail = mail;
    p->home = home;
    p->next_tag = TAG_ANSWER;
    p->last_tag = last_tag;
    for (uint32_t i = 0; i < mail->nodes; i++) {
        TAILQ_INIT(&p->peer[i].queued);
        TAILQ_INIT(&p->peer[i].asked);
        p->peer[i].ring_at = UINT64_MAX;
    }
    *pickups = p;
    return 0;
}

static void tell_server(const struct pickup *pickup, int status, size_t n)
{
    struct pickups *p = pickup->all;
    struct ring_message m = pickup->asked;
    if (pickup->hold != p->home->hold)
        return;
    m.kind = RING_FETCHED;
    m.status = status;
    m.length = (uint32_t)n;
    if (status != -EAGAIN)
        p->busy[m.slot] = 0;
    home_push(p->home, &m);
}

static void pickup_free(struct pickup *pickup)
{
    hold_put(pickup->hold);
    free(pickup);
}

static void pickup_end(struct pickup *pickup, int status, size_t n)
{
    tell_server(pickup, status, n);
    pickup_free(pickup);
}

static void ask_queued(struct pickups *p, uint32_t node);

static void pickup_answered(void *user, int status, uint32_t from, size_t n)
{
    struct pickup *pickup = user;
    struct pickups *p = pickup->all;
    uint32_t node = pickup->asked.node;
    struct pickup_peer *peer = &p->peer[node];
    int failure;
    (void)from;
    if (status)
        status = -EBADMSG;
    else if (wire_failure_parse(ring_slot(&pickup->hold->ring, pickup->asked.slot), n, &failure) == 0)
        status = failure;
    TAILQ_REMOVE(&peer->asked, pickup, next);
    peer->count--;
    p->asked--;
    peer->ring_ms = RING_FIRST_MS;
    mail_heard(p->mail, node);
    pickup_end(pickup, status, status ? 0 : n);
    ask_queued(p, node);
}

static uint32_t parts_of(const struct ring_message *asked)
{
    return asked->flags == FETCH_MANY ? asked->count : 0;
}

static void ask_peer(struct pickups *p, struct pickup *pickup)
{
    const struct ring_message *asked = &pickup->asked;
    struct pickup_peer *peer = &p->peer[asked->node];
    pickup->tag = p->next_tag;
    p->next_tag = p->next_tag >= p->last_tag ? TAG_ANSWER : p->next_tag + 1;
    int error = post_receive(p->mail->post, ring_slot(&pickup->hold->ring, asked->slot), RING_SLOT, (int)asked->node,
                             pickup->tag, pickup_answered, pickup);
    if (error) {
        mail_fail(p->mail, error, "receive an answer");
        pickup_end(pickup, -EHOSTDOWN, 0);
        return;
    }
    TAILQ_INSERT_TAIL(&peer->asked, pickup, next);
    if (peer->count++ == 0)
        peer->ring_ms = RING_FIRST_MS;
    p->asked++;
    peer->ring_at = clock_now() + peer->ring_ms * MILLISECOND;
    struct wire_message m = {.kind = WIRE_FETCH,
                             .tag = (uint32_t)pickup->tag,
                             .file = asked->file,
                             .value = asked->value,
                             .count = asked->count,
                             .flags = asked->flags};
    memcpy(m.part, pickup->part, parts_of(asked) * sizeof *m.part);
    mail_say(p->mail, asked->node, &m, NULL);
}

/* As many as are allowed. */
static void ask_queued(struct pickups *p, uint32_t node)
{
    struct pickup_peer *peer = &p->peer[node];
    bool gone = p->mail->peer[node].gone;
    struct pickup *pickup;
    while ((pickup = TAILQ_FIRST(&peer->queued)) && (gone || peer->count < WIRE_IN_FLIGHT)) {
        TAILQ_REMOVE(&peer->queued, pickup, next);
        if (gone || pickup->hold != p->home->hold)
            pickup_end(pickup, -EHOSTDOWN, 0);
        else
            ask_peer(p, pickup);
    }
}

static struct pickup *pickup_create(struct pickups *p, const struct ring_message *m)
{
    size_t list = parts_of(m) * sizeof(struct fetch_part);
    struct pickup *pickup = malloc(sizeof *pickup + list);
    if (!pickup)
        return NULL;
    *pickup = (struct pickup){.all = p, .hold = hold_get(p->home->hold), .asked = *m};
    memcpy(pickup->part, ring_slot(&pickup->hold->ring, m->slot), list);
    return pickup;
}

void pickups_add(struct pickups *p, const struct ring_message *m)
{
    bool right = m->node < p->mail->nodes && m->node != p->mail->me && m->slot < RING_IN && !p->busy[m->slot] &&
                 fetch_is_sound(m->flags, m->value, m->count);
    if (!right) {
        home_end(p->home, "it sent an invalid request");
        return;
    }
    struct pickup *pickup = pickup_create(p, m);
    if (!pickup) {
        mail_fail(p->mail, -ENOMEM, "a fetch");
        return;
    }
    if (!fetch_parts_are_sound(pickup->part, parts_of(m))) {
        pickup_free(pickup);
        home_end(p->home, "it sent an invalid request");
        return;
    }
    p->busy[m->slot] = 1;
    TAILQ_INSERT_TAIL(&p->peer[m->node].queued, pickup, next);
    ask_queued(p, m->node);
}

void pickups_wait(struct pickups *p, uint32_t node, uint32_t tag)
{
    struct pickup *pickup;
    p->peer[node].ring_at = UINT64_MAX;
    TAILQ_FOREACH(pickup, &p->peer[node].asked, next)
        if ((uint32_t)pickup->tag == tag) {
            tell_server(pickup, -EAGAIN, 0);
            return;
        }
}

void pickups_node_gone(struct pickups *p, uint32_t node)
{
    ask_queued(p, node);
}

void pickups_server_came(struct pickups *p)
{
    memset(p->busy, 0, sizeof p->busy);
}

/* Pickups that were not sent yet are dropped: the next server will ask again. */
void pickups_server_left(struct pickups *p)
{
    struct pickup *pickup;
    for (uint32_t i = 0; i < p->mail->nodes; i++)
        while ((pickup = TAILQ_FIRST(&p->peer[i].queued))) {
            TAILQ_REMOVE(&p->peer[i].queued, pickup, next);
            pickup_end(pickup, -EHOSTDOWN, 0);
        }
}

void pickups_tick(struct pickups *p, uint64_t now)
{
    for (uint32_t i = 0; p->asked > 0 && i < p->mail->nodes; i++) {
        struct pickup_peer *peer = &p->peer[i];
        if (peer->count == 0 || now < peer->ring_at)
            continue;
        mail_want_bell(p->mail, i);
        peer->ring_ms = peer->ring_ms < RING_LAST_MS ? 2 * peer->ring_ms : RING_LAST_MS;
        peer->ring_at = now + peer->ring_ms * MILLISECOND;
    }
}

uint64_t pickups_next(const struct pickups *p)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; p->asked > 0 && i < p->mail->nodes; i++)
        if (p->peer[i].count > 0 && p->peer[i].ring_at < next)
            next = p->peer[i].ring_at;
    return next;
}

unsigned pickups_asked(const struct pickups *p)
{
    return p->asked;
}

void pickups_destroy(struct pickups *p)
{
    struct pickup *pickup;
    for (uint32_t i = 0; p && i < p->mail->nodes; i++) {
        TAILQ_CONCAT(&p->peer[i].queued, &p->peer[i].asked, next);
        while ((pickup = TAILQ_FIRST(&p->peer[i].queued))) {
            TAILQ_REMOVE(&p->peer[i].queued, pickup, next);
            pickup_free(pickup);
        }
    }
    free(p);
}
