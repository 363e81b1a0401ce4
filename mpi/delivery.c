#include "mpi/delivery.h"

#include "fs/base/array.h"
#include "fs/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* a peer may ask its next question before we know that the last answer was sent */
    OPEN_A_PEER = 2 * WIRE_IN_FLIGHT,
    WAITS_A_TIMEOUT = 4,
};

enum delivery_state { DELIVERY_FREE, DELIVERY_OPEN, DELIVERY_WAITING, DELIVERY_ANSWERING };

struct delivery {
    struct deliveries *all;
    enum delivery_state state;
    struct delivery *next_free;
    uint32_t place; /* lower half of the token; upper half: */
    uint32_t generation;
    uint32_t peer;
    struct wire_message asked;
    uint64_t wait_at; /* when to send WAIT again */
    bool wait_busy;   /* the last WAIT is still being sent */
    bool again;       /* sent twice: the slot is free when the second one was sent */
    void *viewed;     /* the answer, from home->view; NULL: it is in a slot */
    uint32_t slot;
    struct hold *hold;
    uint32_t list; /* 1 + number of the list in the current ring with its parts; 0: none */
    struct wire_failure failure;
};

struct deliveries {
    struct mail *mail;
    struct home *home;
    struct spoil *spoil;
    uint64_t timeout;
    bool live;                  /* the server was given all open deliveries */
    struct delivery **delivery; /* by the lower half of the token */
    size_t count, room;
    struct delivery *free;
    unsigned open;
    uint8_t busy[RING_OUT];  /* slots of the current ring that MPI uses */
    bool listed[RING_LISTS]; /* the list has the parts of an open delivery */
    uint64_t wait_next;      /* the earliest wait_at, or an earlier time */
    struct {
        unsigned open, viewed; /* numbers of deliveries */
    } of_peer[];
};

int deliveries_create(struct mail *mail, struct home *home, struct spoil *spoil, uint64_t timeout,
                      struct deliveries **deliveries)
{
    struct deliveries *d = calloc(1, sizeof *d + mail->nodes * sizeof *d->of_peer);
    if (!d)
        return -ENOMEM;
    d->mail = mail;
    d->home = home;
    d->spoil = spoil;
    d->timeout = timeout;
    d->wait_next = UINT64_MAX;
    *deliveries = d;
    return 0;
}

/* Give back the memory of its answer. */
static void delivery_put(struct delivery *it)
{
    if (it->viewed) {
        tier_view_give_back(it->all->home->view, it->viewed);
        it->all->of_peer[it->peer].viewed--;
    }
    it->viewed = NULL;
    hold_put(it->hold);
    it->hold = NULL;
}

void deliveries_destroy(struct deliveries *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->count; i++) {
        delivery_put(d->delivery[i]);
        free(d->delivery[i]);
    }
    free(d->delivery);
    free(d);
}

static struct delivery *delivery_find(const struct deliveries *d, uint64_t token)
{
    uint32_t place = (uint32_t)token;
    struct delivery *it = place < d->count ? d->delivery[place] : NULL;
    return it && it->state != DELIVERY_FREE && it->generation == token >> 32 ? it : NULL;
}

static struct delivery *delivery_new(struct deliveries *d)
{
    struct delivery *it = d->free;
    if (it) {
        d->free = it->next_free;
        return it;
    }
    if (array_reserve(d->delivery, d->room, d->count + 1))
        return NULL;
    it = calloc(1, sizeof *it);
    if (!it)
        return NULL;
    it->place = (uint32_t)d->count;
    return d->delivery[d->count++] = it;
}

static void delivery_end(struct delivery *it)
{
    struct deliveries *d = it->all;
    d->of_peer[it->peer].open--;
    d->open--;
    delivery_put(it);
    it->state = DELIVERY_FREE;
    it->next_free = d->free;
    d->free = it;
}

static void answer_left(void *user, int status, uint32_t from, size_t n)
{
    struct delivery *it = user;
    struct deliveries *d = it->all;
    (void)status, (void)from, (void)n;
    if (it->again) {
        it->again = false;
        return;
    }
    if (it->hold && it->hold == d->home->hold) {
        d->busy[it->slot - RING_IN] = 0;
        home_push(d->home, &(struct ring_message){.kind = RING_SENT, .node = it->peer, .slot = it->slot});
    }
    delivery_end(it);
}

static void answer_peer(struct delivery *it, const void *bytes, size_t n)
{
    struct mail *mail = it->all->mail;
    it->state = DELIVERY_ANSWERING;
    mail_want_bell(mail, it->peer);
    int error = post_send(mail->post, bytes, n, it->peer, (int)it->asked.tag, answer_left, it);
    if (error)
        mail_fail(mail, error, "send an answer");
}

static void answer_failure(struct delivery *it, int status)
{
    it->failure = wire_failure_make(status);
    answer_peer(it, &it->failure, sizeof it->failure);
}

static void answer_payload(struct delivery *it, void *payload, size_t n)
{
    struct spoil *spoil = it->all->spoil;
    switch (spoil_next(spoil)) {
    case SPOIL_DAMAGE:
        spoil_damage(payload, n);
        break;
    case SPOIL_SHORT:
        n -= n / 4;
        break;
    case SPOIL_NEVER:
        answer_left(it, 0, 0, 0);
        return;
    case SPOIL_TWICE:
        it->again = true;
        answer_peer(it, payload, n);
        break;
    case SPOIL_NONE:
    case SPOIL_WAYS:
        break;
    }
    answer_peer(it, payload, n);
}

static void answer_slot(struct delivery *it, uint32_t slot, size_t n)
{
    struct deliveries *d = it->all;
    it->slot = slot;
    it->hold = hold_get(d->home->hold);
    d->busy[slot - RING_IN] = 1;
    answer_payload(it, ring_slot(&it->hold->ring, slot), n);
}

/* False: the server must answer. */
static bool answer_viewed(struct delivery *it)
{
    struct home *home = it->all->home;
    unsigned *held = &it->all->of_peer[it->peer].viewed;
    size_t n = home->view ? tier_view_answer(home->view, &it->asked, *held, &it->viewed) : 0;
    home_ask_segment(home);
    if (!n)
        return false;
    ++*held;
    answer_payload(it, it->viewed, n);
    return true;
}

static void say_wait(struct delivery *it)
{
    struct deliveries *d = it->all;
    it->wait_at = clock_now() + d->timeout / WAITS_A_TIMEOUT;
    if (it->wait_at < d->wait_next)
        d->wait_next = it->wait_at;
    if (!it->wait_busy)
        mail_say(d->mail, it->peer, &(struct wire_message){.kind = WIRE_WAIT, .tag = it->asked.tag}, &it->wait_busy);
}

/* False: all lists are in use. */
static bool list_parts(struct delivery *it)
{
    struct deliveries *d = it->all;
    it->list = 0;
    if (it->asked.flags != FETCH_MANY)
        return true;
    uint32_t list = 0;
    while (list < RING_LISTS && d->listed[list])
        list++;
    if (list == RING_LISTS || !d->home->hold)
        return false;
    memcpy(ring_list(&d->home->hold->ring, list), it->asked.part, it->asked.count * sizeof *it->asked.part);
    d->listed[list] = true;
    it->list = list + 1;
    return true;
}

static void give_to_server(struct delivery *it)
{
    if (!list_parts(it)) {
        answer_failure(it, -ENOBUFS); /* the peer then asks for each part separately */
        return;
    }
    it->state = DELIVERY_OPEN;
    home_push(it->all->home, &(struct ring_message){.kind = RING_SERVE,
                                                    .node = it->peer,
                                                    .slot = it->list ? it->list - 1 : 0,
                                                    .token = (uint64_t)it->generation << 32 | it->place,
                                                    .file = it->asked.file,
                                                    .value = it->asked.value,
                                                    .count = it->asked.count,
                                                    .flags = it->asked.flags});
}

/* The server must answer, or its successor. */
static void pass_on(struct delivery *it)
{
    if (it->asked.flags & FETCH_SHARED)
        answer_failure(it, -EHOSTUNREACH);
    else if (!it->all->live)
        say_wait(it);
    else
        give_to_server(it);
}

void deliveries_add(struct deliveries *d, uint32_t from, const struct wire_message *m)
{
    struct delivery *it = delivery_new(d);
    if (!it) {
        mail_fail(d->mail, -ENOMEM, "memory for a question of another node");
        return;
    }
    *it = (struct delivery){.all = d,
                            .state = DELIVERY_OPEN,
                            .place = it->place,
                            .peer = from,
                            .generation = it->generation + 1,
                            .asked = *m,
                            .wait_busy = it->wait_busy,
                            .wait_at = UINT64_MAX};
    d->open++;
    if (++d->of_peer[from].open > OPEN_A_PEER)
        answer_failure(it, -EBUSY);
    else if (d->home->state == HOME_ENDED)
        answer_failure(it, -EHOSTDOWN);
    else if (!d->live || !answer_viewed(it))
        pass_on(it);
}

void deliveries_reply(struct deliveries *d, const struct ring_message *m)
{
    struct delivery *it = delivery_find(d, m->token);
    bool right = it && it->state != DELIVERY_ANSWERING && m->node == it->peer && m->status <= 0;
    if (right && m->status == 0)
        right = m->slot >= RING_IN && m->slot < RING_IN + RING_OUT && !d->busy[m->slot - RING_IN] &&
                m->length > sizeof(struct wire_failure) && m->length <= RING_SLOT;
    if (right && m->status != -EAGAIN && it->list)
        d->listed[it->list - 1] = false;
    if (!right) {
        home_end(d->home, "it answered a request that nobody sent");
    } else if (m->status == 0) {
        answer_slot(it, m->slot, m->length);
    } else if (m->status == -EAGAIN) {
        it->state = DELIVERY_WAITING;
        say_wait(it);
    } else {
        answer_failure(it, m->status);
    }
}

static bool is_unanswered(const struct delivery *it)
{
    return it->state == DELIVERY_OPEN || it->state == DELIVERY_WAITING;
}

void deliveries_server_came(struct deliveries *d)
{
    memset(d->busy, 0, sizeof d->busy);
    memset(d->listed, 0, sizeof d->listed);
    d->live = true;
    for (size_t i = 0; i < d->count; i++)
        if (is_unanswered(d->delivery[i]))
            give_to_server(d->delivery[i]);
}

void deliveries_server_left(struct deliveries *d)
{
    d->live = false;
    for (size_t i = 0; i < d->count; i++)
        if (is_unanswered(d->delivery[i]))
            say_wait(d->delivery[i]);
}

void deliveries_server_ended(struct deliveries *d)
{
    d->live = false;
    for (size_t i = 0; i < d->count; i++)
        if (is_unanswered(d->delivery[i]))
            answer_failure(d->delivery[i], -EHOSTDOWN);
}

void deliveries_tick(struct deliveries *d, uint64_t now, bool beats)
{
    if (now < d->wait_next)
        return;
    d->wait_next = UINT64_MAX;
    for (size_t i = 0; i < d->count; i++) {
        struct delivery *it = d->delivery[i];
        if (it->state != DELIVERY_WAITING && (it->state != DELIVERY_OPEN || d->live))
            continue;
        if (now >= it->wait_at && (beats || !d->live))
            say_wait(it);
        else if (it->wait_at < d->wait_next)
            d->wait_next = now >= it->wait_at ? now + d->timeout / WAITS_A_TIMEOUT : it->wait_at;
    }
}

uint64_t deliveries_next(const struct deliveries *d)
{
    return d->wait_next;
}

unsigned deliveries_open(const struct deliveries *d)
{
    return d->open;
}
