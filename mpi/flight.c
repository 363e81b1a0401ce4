#include "mpi/flight.h"

#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "mpi/conductor.h"
#include "mpi/delivery.h"
#include "mpi/mail.h"
#include "mpi/pickup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    COMMANDS = 3, /* kept for the next server: the last one of each kind */
    MESSAGES_POSTED = 32,
};

struct inbox {
    struct flight *flight;
    char bytes[WIRE_LONG + 8]; /* longer than any message, so that a too long one is detected */
};

/* The state of our server, from its news. */
struct server_pulse {
    uint64_t seen;          /* version of the last news that were sent */
    uint64_t beat, beat_at; /* version of the last news; when they were seen */
    uint64_t next_at;       /* before this time only urgent news are sent */
    struct wire_news said;  /* zeros: some nodes have not got the last news */
    uint32_t staging;       /* as last sent */
    uint64_t stage_round, turn, moved;
};

struct flight {
    struct flight_config c;
    struct mail mail;
    struct pickups *pickups;
    struct deliveries *deliveries;
    struct conductor *conductor;
    const struct hold *hold; /* ring of the server that has the open questions; NULL: none */
    struct server_pulse pulse;
    struct ring_message command[COMMANDS]; /* kind 0: none */
    bool gone_said, quit_said, quit_seen;
    struct inbox inbox[MESSAGES_POSTED];
};

/* --- the server --- */

static void take_command(struct flight *f, const struct ring_message *m)
{
    if (m->value == WORLD_TURN && m->token > 0 && turn_is_sound(&m->turn)) {
        conductor_ask(f->conductor, m->token, &m->turn);
    } else if (m->value >= WORLD_STAGE && m->value <= WORLD_UMOUNT) {
        mail_say_all(&f->mail, &(struct wire_message){.kind = WIRE_COMMAND, .command = m->value, .token = m->token});
        f->c.home->ending |= m->value == WORLD_UMOUNT;
    } else {
        home_end(f->c.home, "it sent a malformed message");
    }
}

void flight_take(struct flight *f, const struct ring_message *m)
{
    log_debug("courier", "message %u of the server, value %u", (unsigned)m->kind, (unsigned)m->value);
    switch (m->kind) {
    case RING_FETCH:
        pickups_add(f->pickups, m);
        break;
    case RING_REPLY:
        deliveries_reply(f->deliveries, m);
        break;
    case RING_COMMAND:
        take_command(f, m);
        break;
    default:
        home_end(f->c.home, "it sent a malformed message");
    }
}

static void give_commands(struct flight *f)
{
    for (int i = 0; i < COMMANDS; i++)
        if (f->command[i].kind)
            home_push(f->c.home, &f->command[i]);
    memset(f->command, 0, sizeof f->command);
}

static void tell_gone(struct flight *f, uint32_t node)
{
    if (!f->c.home->ending)
        home_push(f->c.home, &(struct ring_message){.kind = RING_GONE, .node = node});
}

/* A new server: all its slots are free, and it gets the open questions. */
static void server_came(struct flight *f)
{
    f->hold = f->c.home->hold;
    f->pulse.seen = f->pulse.beat = 0;
    f->pulse.beat_at = clock_now();
    pickups_server_came(f->pickups);
    deliveries_server_came(f->deliveries);
    give_commands(f);
    for (uint32_t i = 0; i < f->c.nodes; i++)
        if (f->mail.peer[i].gone)
            tell_gone(f, i);
    conductor_server_came(f->conductor);
}

static void server_left(struct flight *f)
{
    f->hold = NULL;
    pickups_server_left(f->pickups);
    if (f->c.home->state != HOME_ENDED)
        deliveries_server_left(f->deliveries);
    conductor_server_left(f->conductor);
}

static void server_ended(struct flight *f)
{
    f->gone_said = true;
    deliveries_server_ended(f->deliveries);
    mail_say_all(&f->mail, &(struct wire_message){.kind = WIRE_GONE});
}

void flight_look(struct flight *f)
{
    enum home_state state = f->c.home->state;
    if (f->hold && (state != HOME_LIVE || f->hold != f->c.home->hold))
        server_left(f);
    if (!f->hold && state == HOME_LIVE)
        server_came(f);
    if (state == HOME_ENDED && !f->gone_said)
        server_ended(f);
    conductor_look(f->conductor);
}

/* --- messages from peers --- */

static void pass_command_on(struct flight *f, uint32_t from, const struct wire_message *m)
{
    struct ring_message command = {.kind = RING_COMMAND, .node = from, .value = m->command, .token = m->token};
    f->c.home->ending |= m->command == WORLD_UMOUNT;
    if (f->hold)
        home_push(f->c.home, &command);
    else
        f->command[m->command - WORLD_STAGE] = command;
}

static void note_gone(struct flight *f, uint32_t from)
{
    if (f->mail.peer[from].gone)
        return;
    if (!f->c.home->ending)
        log_info("node %" PRIu32 " no longer has a server", from);
    f->mail.peer[from].gone = true;
    pickups_node_gone(f->pickups, from);
    if (f->hold)
        tell_gone(f, from);
}

static void note_news(struct flight *f, uint32_t from, const struct wire_message *m)
{
    struct node_news news = {0};
    wire_news_to(&news, &m->news);
    news_write(ring_news(&f->c.home->hold->ring, from), &news);
}

static void take_message(struct flight *f, uint32_t from, const struct wire_message *m)
{
    log_debug("courier", "node %" PRIu32 ": message %" PRIu32 ", tag %" PRIu32, from, m->kind, m->tag);
    switch (m->kind) {
    case WIRE_FETCH:
        deliveries_add(f->deliveries, from, m);
        break;
    case WIRE_WAIT:
        pickups_wait(f->pickups, from, m->tag);
        break;
    case WIRE_GONE:
        note_gone(f, from);
        break;
    case WIRE_COMMAND:
        pass_command_on(f, from, m);
        break;
    case WIRE_NEWS:
        note_news(f, from, m);
        break;
    case WIRE_QUIT:
        f->mail.peer[from].quit = f->mail.peer[from].gone = true;
        f->quit_seen = true;
        break;
    case WIRE_PING:
        mail_say(&f->mail, from, &(struct wire_message){.kind = WIRE_PONG}, NULL);
        break;
    case WIRE_PONG:
        mail_heard(&f->mail, from);
        break;
    default:
        conductor_take(f->conductor, from, m);
    }
}

static void message_came(void *user, int status, uint32_t from, size_t n);

static int open_inbox(struct inbox *in)
{
    return post_receive(in->flight->c.post, in->bytes, sizeof in->bytes, POST_ANY, TAG_MESSAGE, message_came, in);
}

static void message_came(void *user, int status, uint32_t from, size_t n)
{
    struct inbox *in = user;
    struct flight *f = in->flight;
    struct wire_message m;
    bool right = !status && from < f->c.nodes && from != f->c.me && wire_message_parse(in->bytes, n, &m) == 0;
    int error = open_inbox(in);
    if (error)
        mail_fail(&f->mail, error, "receive a message");
    if (right)
        take_message(f, from, &m);
    else
        log_limited(LOG_LEVEL_WARNING, 5, "node %" PRIu32 " sent a malformed message of %zu bytes", from, n);
}

/* --- the clock --- */

static void say_news(struct flight *f, const struct node_news *news, bool urgent)
{
    struct server_pulse *p = &f->pulse;
    struct wire_message m = {.kind = WIRE_NEWS};
    wire_news_from(&m.news, news);
    p->staging = news->staging;
    p->stage_round = news->stage_round;
    p->turn = news->turn;
    p->moved = news->moved;
    if (memcmp(&m.news, &p->said, sizeof m.news) == 0)
        return;
    p->said = m.news;
    for (uint32_t i = 0; i < f->c.nodes; i++) {
        struct mail_peer *peer = &f->mail.peer[i];
        if (i == f->c.me || peer->quit)
            continue;
        if (peer->news_busy) { /* it gets them with the next news */
            memset(&p->said, 0, sizeof p->said);
            continue;
        }
        mail_say(&f->mail, i, &m, &peer->news_busy);
        if (urgent)
            mail_want_bell(&f->mail, i);
    }
}

/* The server writes its news every second, even without changes: that shows that it is alive. For a stopped server, no
 * WAIT is sent; its peers wait for peer_timeout after the last one. */
static bool server_beats(const struct flight *f, uint64_t now)
{
    return now - f->pulse.beat_at < SECOND + f->c.timeout / 4;
}

/* Changed news are sent once per second; those that staging or the next turn waits for are sent at once. */
static void tick_news(struct flight *f, uint64_t now)
{
    struct server_pulse *p = &f->pulse;
    struct node_news news;
    const struct node_news *place = f->hold ? ring_news(&f->hold->ring, f->c.me) : NULL;
    if (!place || atomic_load_explicit(&place->version, memory_order_relaxed) == p->seen || !news_read(place, &news))
        return;
    if (news.version != p->beat)
        p->beat_at = now;
    p->beat = news.version;
    bool urgent = news.staging != p->staging || news.stage_round != p->stage_round || news.turn != p->turn ||
                  news.moved != p->moved;
    if (!urgent && now < p->next_at)
        return; /* to be checked again then */
    p->seen = news.version;
    p->next_at = now + SECOND + f->c.nodes * MILLISECOND;
    say_news(f, &news, urgent);
}

void flight_tick(struct flight *f, uint64_t now)
{
    deliveries_tick(f->deliveries, now, server_beats(f, now));
    tick_news(f, now);
    pickups_tick(f->pickups, now);
    conductor_tick(f->conductor, now);
}

uint64_t flight_next(const struct flight *f)
{
    uint64_t waits = deliveries_next(f->deliveries), bells = pickups_next(f->pickups);
    return waits < bells ? waits : bells;
}

void flight_ring(struct flight *f)
{
    mail_ring(&f->mail);
}

bool flight_misses(struct flight *f, uint64_t now, uint32_t *node)
{
    for (*node = 0; *node < f->c.nodes; (*node)++)
        if (*node != f->c.me && !f->mail.peer[*node].quit && mail_is_lost(&f->mail, *node, f->c.timeout, now))
            return true;
    return false;
}

/* --- the world's end --- */

void flight_quit(struct flight *f)
{
    for (uint32_t i = 0; !f->quit_said && i < f->c.nodes; i++) /* nodes that leave wait for it as well */
        if (i != f->c.me)
            mail_say(&f->mail, i, &(struct wire_message){.kind = WIRE_QUIT}, NULL);
    f->quit_said = true;
}

bool flight_asks(const struct flight *f)
{
    return pickups_asked(f->pickups) > 0;
}

bool flight_pending(const struct flight *f)
{
    return flight_asks(f) || deliveries_open(f->deliveries) > 0 || post_sends(f->c.post) > 0;
}

bool flight_world_ended(const struct flight *f)
{
    for (uint32_t i = 0; i < f->c.nodes; i++)
        if (i != f->c.me && !(f->quit_said ? f->mail.peer[i].quit : f->mail.peer[i].gone))
            return false;
    return f->quit_said || f->gone_said;
}

bool flight_quit_seen(const struct flight *f)
{
    return f->quit_seen;
}

bool flight_broken(const struct flight *f)
{
    return f->mail.broken;
}

/* --- beginning and end --- */

static int make_parts(struct flight *f)
{
    const struct flight_config *c = &f->c;
    int error = mail_init(&f->mail, c->me, c->nodes, c->post, c->doorbell);
    if (!error)
        error = pickups_create(&f->mail, c->home, c->last_tag, &f->pickups);
    if (!error)
        error = deliveries_create(&f->mail, c->home, c->spoil, c->timeout, &f->deliveries);
    if (!error)
        error = conductor_create(&f->mail, c->home, &f->conductor);
    for (int i = 0; !error && i < MESSAGES_POSTED; i++) {
        f->inbox[i].flight = f;
        error = open_inbox(&f->inbox[i]);
    }
    return error;
}

int flight_create(const struct flight_config *config, struct flight **flight)
{
    struct flight *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    f->c = *config;
    int error = make_parts(f);
    if (error)
        flight_destroy(f);
    else
        *flight = f;
    return error;
}

void flight_destroy(struct flight *f)
{
    if (!f)
        return;
    pickups_destroy(f->pickups);
    deliveries_destroy(f->deliveries);
    conductor_destroy(f->conductor);
    mail_fini(&f->mail);
    free(f);
}
