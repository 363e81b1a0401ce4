/* Serves: what others want of our server.
 *
 * A serve belongs to the peer: a new server is given again what the one before has not answered.
 *
 *   OPEN ─▶ WAITING ─▶ ANSWERING ─▶ ended
 *     └──────────────────▲ */
#include "mpi/flight-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <string.h>

enum {
    SERVES_A_PEER = 2 * MOST_IN_FLIGHT, /* it may ask for the next before we have seen that the last has left */
    WAITS_A_TIMEOUT = 4,
};

static uint64_t token_of(const struct serve *s)
{
    return (uint64_t)s->generation << 32 | s->place;
}

static struct serve *serve_find(struct flight *f, uint64_t token)
{
    uint32_t place = (uint32_t)token;
    struct serve *s = place < f->serves ? f->serve[place] : NULL;
    return s && s->used && s->generation == token >> 32 ? s : NULL;
}

static struct serve *serve_new(struct flight *f)
{
    struct serve *s = f->free_serve;
    if (s) {
        f->free_serve = s->next_free;
        return s;
    }
    if (f->serves == f->serve_room) {
        size_t room = f->serve_room ? 2 * f->serve_room : SERVES_A_PEER;
        struct serve **bigger = reallocarray(f->serve, room, sizeof *bigger);
        if (!bigger)
            return NULL;
        f->serve = bigger;
        f->serve_room = room;
    }
    s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->place = (uint32_t)f->serves;
    return f->serve[f->serves++] = s;
}

static void serve_end(struct serve *s)
{
    struct flight *f = s->flight;
    f->peer[s->peer].serves--;
    f->open--;
    hold_put(s->hold);
    s->hold = NULL;
    s->used = false;
    s->next_free = f->free_serve;
    f->free_serve = s;
}

static void answer_sent(void *user, int status, uint32_t from, size_t n)
{
    struct serve *s = user;
    struct flight *f = s->flight;
    (void)status, (void)from, (void)n;
    if (s->again) {
        s->again = false;
        return;
    }
    if (s->hold && s->hold == f->hold) {
        struct ring_message m = {.kind = RING_SENT, .node = s->peer, .slot = s->slot};
        f->busy_out[s->slot - RING_IN] = 0;
        link_push(f->c.link, &m);
    }
    serve_end(s);
}

static void answer(struct serve *s, const void *bytes, size_t n)
{
    struct flight *f = s->flight;
    s->answering = true;
    flight_want_bell(f, s->peer);
    int error = post_send(f->c.post, bytes, n, s->peer, (int)s->asked.tag, answer_sent, s);
    if (error)
        flight_fail(f, error, "send an answer");
}

static void answer_failure(struct serve *s, int status)
{
    s->failure = wire_failure_make(status);
    answer(s, &s->failure, sizeof s->failure);
}

static void answer_payload(struct serve *s, uint32_t slot, size_t n)
{
    struct flight *f = s->flight;
    s->slot = slot;
    s->hold = hold_get(f->hold);
    f->busy_out[slot - RING_IN] = 1;
    void *payload = ring_slot(&f->hold->ring, slot);
    switch (faults_next(f->c.faults)) {
    case FAULT_DAMAGE:
        faults_damage(payload, n);
        break;
    case FAULT_SHORT:
        n -= n / 4;
        break;
    case FAULT_NEVER:
        answer_sent(s, 0, 0, 0);
        return;
    case FAULT_TWICE:
        s->again = true;
        answer(s, payload, n);
        break;
    default:
        break;
    }
    answer(s, payload, n);
}

static void say_wait(struct serve *s, uint64_t now)
{
    struct flight *f = s->flight;
    s->wait_at = now + f->c.timeout / WAITS_A_TIMEOUT;
    if (s->wait_at < f->wait_next)
        f->wait_next = s->wait_at;
    if (s->wait_busy)
        return;
    struct wire_message m = wire_make(WIRE_WAIT);
    m.tag = s->asked.tag;
    flight_say(f, s->peer, &m, &s->wait_busy);
}

static void give_to_server(struct flight *f, struct serve *s)
{
    struct ring_message m = {.kind = RING_SERVE,
                             .node = s->peer,
                             .token = token_of(s),
                             .file = s->asked.file,
                             .value = s->asked.value,
                             .count = s->asked.count};
    s->waiting = false;
    link_push(f->c.link, &m);
}

void serve_question(struct flight *f, uint32_t from, const struct wire_message *m)
{
    struct peer *peer = &f->peer[from];
    struct serve *s = serve_new(f);
    if (!s) {
        flight_fail(f, -ENOMEM, "a question of a peer");
        return;
    }
    *s = (struct serve){.flight = f,
                        .used = true,
                        .place = s->place,
                        .peer = from,
                        .generation = s->generation + 1,
                        .asked = *m,
                        .wait_busy = s->wait_busy,
                        .wait_at = UINT64_MAX};
    f->open++;
    if (++peer->serves > SERVES_A_PEER)
        answer_failure(s, -EBUSY);
    else if (f->c.link->state == LINK_ENDED)
        answer_failure(s, -EHOSTDOWN);
    else if (f->live)
        give_to_server(f, s);
    else
        say_wait(s, clock_now());
}

void serve_reply(struct flight *f, const struct ring_message *m)
{
    struct serve *s = serve_find(f, m->token);
    bool right = s && !s->answering && m->node == s->peer && m->status <= 0;
    if (right && m->status == 0)
        right = m->slot >= RING_IN && m->slot < RING_IN + RING_OUT && !f->busy_out[m->slot - RING_IN] &&
                m->length >= sizeof(struct payload_header) && m->length <= RING_SLOT;
    if (!right) {
        link_end(f->c.link, "it answers what was not asked");
        return;
    }
    if (m->status == 0) {
        answer_payload(s, m->slot, m->length);
    } else if (m->status == -EAGAIN) {
        s->waiting = true;
        say_wait(s, clock_now());
    } else {
        answer_failure(s, m->status);
    }
}

void serve_give_all(struct flight *f)
{
    for (size_t i = 0; i < f->serves; i++)
        if (f->serve[i]->used && !f->serve[i]->answering)
            give_to_server(f, f->serve[i]);
}

void serve_wait_all(struct flight *f)
{
    uint64_t now = clock_now();
    for (size_t i = 0; i < f->serves; i++)
        if (f->serve[i]->used && !f->serve[i]->answering)
            say_wait(f->serve[i], now);
}

void serve_fail_all(struct flight *f)
{
    for (size_t i = 0; i < f->serves; i++)
        if (f->serve[i]->used && !f->serve[i]->answering)
            answer_failure(f->serve[i], -EHOSTDOWN);
}

void serve_free_all(struct flight *f)
{
    for (size_t i = 0; i < f->serves; i++) {
        hold_put(f->serve[i]->hold);
        free(f->serve[i]);
    }
    free(f->serve);
}

void serve_tick(struct flight *f, uint64_t now)
{
    if (now < f->wait_next)
        return;
    f->wait_next = UINT64_MAX;
    bool alive = !f->live || now - f->heart_at < f->c.timeout;
    for (size_t i = 0; i < f->serves; i++) {
        struct serve *s = f->serve[i];
        if (!s->used || s->answering || (f->live && !s->waiting))
            continue;
        if (now >= s->wait_at && alive)
            say_wait(s, now);
        else if (s->wait_at < f->wait_next)
            f->wait_next = now >= s->wait_at ? now + f->c.timeout / WAITS_A_TIMEOUT : s->wait_at;
    }
}
