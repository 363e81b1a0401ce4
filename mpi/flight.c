/* Fetches, serves and the messages about them.
 *
 * A fetch belongs to the ring it came from: its slot is MPI's until the answer is there, and when the server has died
 * meanwhile the old ring stays mapped for it and nobody is told. A serve belongs to the peer: a new server is given
 * again what the one before has not answered.
 *
 *   fetch:  QUEUED ─▶ ASKED ─▶ ended           serve:  OPEN ─▶ WAITING ─▶ ANSWERING ─▶ ended
 *                                                        └──────────────────▲                  */
#include "mpi/flight.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"

#include <inttypes.h>
#include <string.h>

#define MILLISECOND UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

enum {
    SERVES_A_PEER = 2 * MOST_IN_FLIGHT, /* it may ask for the next before we have seen that the last has left */
    RING_FIRST_MS = 1, /* until a peer that does not answer is rung again; then twice that, up to: */
    RING_LAST_MS = 128,
    WAITS_A_TIMEOUT = 4,
    LATEST = 3, /* commands kept for the next server: the last of each kind */
};

struct fetch {
    struct flight *flight;
    struct fetch *next; /* QUEUED or ASKED, of one peer */
    struct hold *hold;
    struct ring_message asked; /* as it came */
    int tag;
};

struct fetch_list {
    struct fetch *first, **last;
};

struct serve {
    struct flight *flight;
    bool used, waiting, answering, again; /* again: sent twice, the slot is not free before the second */
    struct serve *next_free;
    uint32_t place; /* the lower half of its token; the upper one: */
    uint32_t generation;
    uint32_t peer;
    struct wire_message asked;
    uint64_t wait_at; /* when WAIT is to be said again */
    bool wait_busy;   /* the last one has not left yet */
    uint32_t slot;
    struct hold *hold; /* ANSWERING with a payload */
    struct wire_failure failure;
};

struct peer {
    bool gone, quit;
    bool ring;      /* it was sent something */
    bool news_busy; /* the last news have not left yet */
    unsigned asked, serves;
    struct fetch_list queue, flying;
    uint64_t ring_at; /* again, when `asked` are not answered */
    unsigned ring_ms;
};

struct letter { /* a message that is being sent */
    struct flight *flight;
    struct wire_message message;
    bool *busy; /* cleared when it has left; NULL: nobody waits */
};

struct inbox {
    struct flight *flight;
    char bytes[WIRE_LONG + 8]; /* what is too long is seen */
};

struct flight {
    struct flight_config c;
    struct peer *peer; /* nodes of them */
    uint32_t *bell;    /* whom to ring: `bells` of them */
    uint32_t bells;
    int next_tag;
    uint8_t busy_in[RING_IN], busy_out[RING_OUT]; /* slots of the present ring that MPI has */
    struct serve **serve;                         /* by the lower half of its token */
    size_t serves, serve_room;
    struct serve *free_serve;
    unsigned asked, open; /* fetches in flight; serves not ended */
    uint64_t wait_next;   /* the earliest wait_at, or earlier */
    struct hold *hold;    /* whose slots busy_* are; borrowed from the link */
    bool live;            /* the server has been given what is open */
    uint64_t news_at, news_seen, heart_at;
    struct wire_news news_said;
    uint32_t staging; /* as they were said last */
    uint64_t stage_round;
    struct ring_message command[LATEST]; /* kind 0: none */
    bool gone_said, quit_said, quit_seen, broken;
    struct inbox inbox[MESSAGES_POSTED];
};

static void fail_world(struct flight *f, int error, const char *what)
{
    if (!f->broken && error != -EIO) /* which has been reported */
        log_error("%s: %s", what, strerror(-error));
    f->broken = true;
}

static void want_bell(struct flight *f, uint32_t node)
{
    if (!f->peer[node].ring)
        f->bell[f->bells++] = node;
    f->peer[node].ring = true;
}

/* --- messages to peers --- */

static void letter_left(void *user, int status, uint32_t from, size_t n)
{
    struct letter *letter = user;
    (void)status, (void)from, (void)n;
    if (letter->busy)
        *letter->busy = false;
    free(letter);
}

static void say(struct flight *f, uint32_t to, const struct wire_message *message, bool *busy)
{
    struct letter *letter = malloc(sizeof *letter);
    int error = letter ? 0 : -ENOMEM;
    if (!error) {
        *letter = (struct letter){f, *message, busy};
        error = post_send(f->c.post, &letter->message, wire_length(message), to, TAG_MESSAGE, letter_left, letter);
    }
    if (error) {
        free(letter);
        fail_world(f, error, "send a message");
        return;
    }
    if (busy)
        *busy = true;
    if (message->kind != WIRE_NEWS)
        want_bell(f, to);
}

static void say_all(struct flight *f, const struct wire_message *message)
{
    for (uint32_t i = 0; i < f->c.nodes; i++)
        if (i != f->c.me && !f->peer[i].quit)
            say(f, i, message, NULL);
}

/* --- fetches --- */

static void list_init(struct fetch_list *l)
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

static void start_fetches(struct flight *f, uint32_t node);

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
    start_fetches(f, node);
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
        fail_world(f, error, "receive an answer");
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
    say(f, asked->node, &m, NULL);
}

static void start_fetches(struct flight *f, uint32_t node)
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

static void take_fetch(struct flight *f, const struct ring_message *m)
{
    bool right = m->node < f->c.nodes && m->node != f->c.me && m->slot < RING_IN && !f->busy_in[m->slot] && m->count > 0 &&
                 m->count <= RING_VALUES && m->value <= UINT32_MAX - m->count;
    if (!right) {
        link_end(f->c.link, "it asks for what cannot be");
        return;
    }
    struct fetch *fetch = calloc(1, sizeof *fetch);
    if (!fetch) {
        fail_world(f, -ENOMEM, "a fetch");
        return;
    }
    *fetch = (struct fetch){.flight = f, .hold = hold_get(f->hold), .asked = *m};
    f->busy_in[m->slot] = 1;
    list_add(&f->peer[m->node].queue, fetch);
    start_fetches(f, m->node);
}

static struct fetch *fetch_find(const struct peer *peer, uint32_t tag)
{
    struct fetch *fetch = peer->flying.first;
    while (fetch && (uint32_t)fetch->tag != tag)
        fetch = fetch->next;
    return fetch;
}

/* --- serves --- */

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
    want_bell(f, s->peer);
    int error = post_send(f->c.post, bytes, n, s->peer, (int)s->asked.tag, answer_sent, s);
    if (error)
        fail_world(f, error, "send an answer");
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
    say(f, s->peer, &m, &s->wait_busy);
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

static void take_question(struct flight *f, uint32_t from, const struct wire_message *m)
{
    struct peer *peer = &f->peer[from];
    struct serve *s = serve_new(f);
    if (!s) {
        fail_world(f, -ENOMEM, "a question of a peer");
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

static void take_reply(struct flight *f, const struct ring_message *m)
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

/* --- the server --- */

void flight_take(struct flight *f, const struct ring_message *m)
{
    switch (m->kind) {
    case RING_FETCH:
        take_fetch(f, m);
        return;
    case RING_REPLY:
        take_reply(f, m);
        return;
    case RING_COMMAND:
        if (m->value >= WORLD_STAGE && m->value <= WORLD_UMOUNT) {
            struct wire_message say_it = wire_make(WIRE_COMMAND);
            say_it.command = m->value;
            say_it.token = m->token;
            say_all(f, &say_it);
            f->c.link->ending |= m->value == WORLD_UMOUNT;
            return;
        }
    }
    link_end(f->c.link, "it says what makes no sense");
}

static void give_commands(struct flight *f)
{
    for (int i = 0; i < LATEST; i++)
        if (f->command[i].kind)
            link_push(f->c.link, &f->command[i]);
    memset(f->command, 0, sizeof f->command);
}

/* A new server: its slots are free, and what is open is its to answer. */
static void server_came(struct flight *f)
{
    f->hold = f->c.link->hold;
    memset(f->busy_in, 0, sizeof f->busy_in);
    memset(f->busy_out, 0, sizeof f->busy_out);
    f->live = true;
    f->news_seen = 0;
    f->heart_at = clock_now();
    for (size_t i = 0; i < f->serves; i++)
        if (f->serve[i]->used && !f->serve[i]->answering)
            give_to_server(f, f->serve[i]);
    give_commands(f);
}

static void server_left(struct flight *f)
{
    f->live = false;
    for (uint32_t i = 0; i < f->c.nodes; i++) /* what was not sent yet is of no use to the next one */
        while (f->peer[i].queue.first) {
            struct fetch *fetch = f->peer[i].queue.first;
            list_remove(&f->peer[i].queue, fetch);
            fetch_end(f, fetch, -EHOSTDOWN, 0);
        }
    uint64_t now = clock_now();
    for (size_t i = 0; f->c.link->state != LINK_ENDED && i < f->serves; i++)
        if (f->serve[i]->used && !f->serve[i]->answering)
            say_wait(f->serve[i], now);
}

static void server_ended(struct flight *f)
{
    struct wire_message gone = wire_make(WIRE_GONE);
    f->gone_said = true;
    for (size_t i = 0; i < f->serves; i++)
        if (f->serve[i]->used && !f->serve[i]->answering)
            answer_failure(f->serve[i], -EHOSTDOWN);
    say_all(f, &gone);
}

void flight_link(struct flight *f)
{
    enum link_state state = f->c.link->state;
    if (f->live && (state != LINK_LIVE || f->hold != f->c.link->hold))
        server_left(f);
    if (!f->live && state == LINK_LIVE)
        server_came(f);
    if (state == LINK_ENDED && !f->gone_said)
        server_ended(f);
}

/* --- messages from peers --- */

static void take_command(struct flight *f, uint32_t from, const struct wire_message *m)
{
    struct ring_message command = {.kind = RING_COMMAND, .node = from, .value = m->command, .token = m->token};
    f->c.link->ending |= m->command == WORLD_UMOUNT;
    if (f->live)
        link_push(f->c.link, &command);
    else
        f->command[m->command - WORLD_STAGE] = command;
}

static void take_gone(struct flight *f, uint32_t from)
{
    if (f->peer[from].gone)
        return;
    if (!f->c.link->ending)
        log_info("node %" PRIu32 " has no server any more", from);
    f->peer[from].gone = true;
    start_fetches(f, from);
}

static void take_news(struct flight *f, uint32_t from, const struct wire_message *m)
{
    struct node_news news = {0};
    wire_news_to(&news, &m->news);
    news_write(ring_news(&f->c.link->hold->ring, from), &news);
}

static void take_message(struct flight *f, uint32_t from, const struct wire_message *m)
{
    struct fetch *fetch;
    switch (m->kind) {
    case WIRE_FETCH:
        take_question(f, from, m);
        break;
    case WIRE_WAIT:
        fetch = fetch_find(&f->peer[from], m->tag);
        f->peer[from].ring_at = UINT64_MAX;
        if (fetch)
            tell_fetched(f, fetch, -EAGAIN, 0);
        break;
    case WIRE_GONE:
        take_gone(f, from);
        break;
    case WIRE_COMMAND:
        take_command(f, from, m);
        break;
    case WIRE_NEWS:
        take_news(f, from, m);
        break;
    case WIRE_QUIT:
        f->peer[from].quit = f->peer[from].gone = true;
        f->quit_seen = true;
        break;
    }
}

static void message_came(void *user, int status, uint32_t from, size_t n);

static int open_inbox(struct flight *f, struct inbox *in)
{
    return post_receive(f->c.post, in->bytes, sizeof in->bytes, POST_ANY, TAG_MESSAGE, message_came, in);
}

static void message_came(void *user, int status, uint32_t from, size_t n)
{
    struct inbox *in = user;
    struct flight *f = in->flight;
    struct wire_message m;
    bool right = !status && from < f->c.nodes && from != f->c.me && wire_message_parse(in->bytes, n, &m) == 0;
    int error = open_inbox(f, in);
    if (error)
        fail_world(f, error, "receive a message");
    if (right)
        take_message(f, from, &m);
    else
        log_limited(LOG_LEVEL_WARNING, 5, "node %" PRIu32 " sent a message of %zu bytes that makes no sense", from, n);
}

/* --- the clock --- */

static void tick_waits(struct flight *f, uint64_t now)
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

static uint64_t news_every(const struct flight *f)
{
    return SECOND + f->c.nodes * MILLISECOND;
}

static void say_news(struct flight *f, const struct node_news *news, bool urgent)
{
    struct wire_message m = wire_make(WIRE_NEWS);
    wire_news_from(&m.news, news);
    f->staging = news->staging;
    f->stage_round = news->stage_round;
    if (memcmp(&m.news, &f->news_said, sizeof m.news) == 0)
        return;
    f->news_said = m.news;
    for (uint32_t i = 0; i < f->c.nodes; i++) {
        if (i == f->c.me || f->peer[i].quit || f->peer[i].news_busy)
            continue;
        say(f, i, &m, &f->peer[i].news_busy);
        if (urgent)
            want_bell(f, i);
    }
}

/* The server writes its news every second, also when they are the same: that is its pulse, and one that has stopped gets
 * no more WAITs said in its name. They are passed on as often where they changed, but at once what staging waits for. */
static void tick_news(struct flight *f, uint64_t now)
{
    struct node_news news;
    const struct node_news *place = f->live ? ring_news(&f->hold->ring, f->c.me) : NULL;
    if (!place || atomic_load_explicit(&place->version, memory_order_relaxed) == f->news_seen || !news_read(place, &news))
        return;
    f->news_seen = news.version;
    f->heart_at = now;
    bool urgent = news.staging != f->staging || news.stage_round != f->stage_round;
    if (!urgent && now < f->news_at) {
        f->news_seen = 0; /* to be looked at again when it is time */
        return;
    }
    f->news_at = now + news_every(f);
    say_news(f, &news, urgent);
}

static void tick_bells(struct flight *f, uint64_t now)
{
    for (uint32_t i = 0; f->asked > 0 && i < f->c.nodes; i++) {
        struct peer *peer = &f->peer[i];
        if (peer->asked == 0 || now < peer->ring_at)
            continue;
        want_bell(f, i);
        peer->ring_ms = peer->ring_ms < RING_LAST_MS ? 2 * peer->ring_ms : RING_LAST_MS;
        peer->ring_at = now + peer->ring_ms * MILLISECOND;
    }
}

void flight_tick(struct flight *f, uint64_t now)
{
    tick_waits(f, now);
    tick_news(f, now);
    tick_bells(f, now);
}

uint64_t flight_next(const struct flight *f)
{
    uint64_t next = f->wait_next;
    for (uint32_t i = 0; f->asked > 0 && i < f->c.nodes; i++)
        if (f->peer[i].asked > 0 && f->peer[i].ring_at < next)
            next = f->peer[i].ring_at;
    return next;
}

void flight_ring(struct flight *f)
{
    while (f->bells > 0) {
        uint32_t node = f->bell[--f->bells];
        f->peer[node].ring = false;
        doorbell_ring(f->c.doorbell, node);
    }
}

/* --- the world's end --- */

void flight_quit(struct flight *f)
{
    struct wire_message quit = wire_make(WIRE_QUIT);
    for (uint32_t i = 0; !f->quit_said && i < f->c.nodes; i++) /* those who leave wait for it, too */
        if (i != f->c.me)
            say(f, i, &quit, NULL);
    f->quit_said = true;
}

bool flight_pending(const struct flight *f)
{
    return f->asked > 0 || f->open > 0 || post_sends(f->c.post) > 0;
}

bool flight_world_ended(const struct flight *f)
{
    for (uint32_t i = 0; i < f->c.nodes; i++)
        if (i != f->c.me && !(f->quit_said ? f->peer[i].quit : f->peer[i].gone))
            return false;
    return f->quit_said || f->gone_said;
}

bool flight_quit_seen(const struct flight *f)
{
    return f->quit_seen;
}

bool flight_broken(const struct flight *f)
{
    return f->broken;
}

/* --- beginning and end --- */

static int open_inboxes(struct flight *f)
{
    int error = 0;
    for (int i = 0; !error && i < MESSAGES_POSTED; i++) {
        f->inbox[i].flight = f;
        error = open_inbox(f, &f->inbox[i]);
    }
    return error;
}

int flight_create(const struct flight_config *config, struct flight **flight)
{
    struct flight *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    f->c = *config;
    f->next_tag = TAG_ANSWER;
    f->wait_next = UINT64_MAX;
    f->peer = calloc(config->nodes, sizeof *f->peer);
    f->bell = calloc(config->nodes, sizeof *f->bell);
    int error = f->peer && f->bell ? open_inboxes(f) : -ENOMEM;
    for (uint32_t i = 0; !error && i < config->nodes; i++) {
        list_init(&f->peer[i].queue);
        list_init(&f->peer[i].flying);
        f->peer[i].ring_at = UINT64_MAX;
    }
    if (error) {
        flight_destroy(f);
        return error;
    }
    *flight = f;
    return 0;
}

static void free_list(struct fetch_list *l)
{
    while (l->first) {
        struct fetch *fetch = l->first;
        list_remove(l, fetch);
        hold_put(fetch->hold);
        free(fetch);
    }
}

void flight_destroy(struct flight *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; f->peer && i < f->c.nodes; i++) {
        free_list(&f->peer[i].queue);
        free_list(&f->peer[i].flying);
    }
    for (size_t i = 0; i < f->serves; i++) {
        hold_put(f->serve[i]->hold);
        free(f->serve[i]);
    }
    free(f->serve);
    free(f->bell);
    free(f->peer);
    free(f);
}
