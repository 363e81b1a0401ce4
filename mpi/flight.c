/* What goes between this node and its peers beside fetches and serves: messages, commands, news, the end of a server, a
 * node, a world. */
#include "mpi/flight-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"

#include <inttypes.h>
#include <string.h>

#define MILLISECOND UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

enum {
    RING_LAST_MS = 128, /* a peer that does not answer is rung again, at last as rarely as this */
};

struct letter { /* a message that is being sent */
    struct flight *flight;
    struct wire_message message;
    bool *busy; /* cleared when it has left; NULL: nobody waits */
};

void flight_fail(struct flight *f, int error, const char *what)
{
    if (!f->broken && error != -EIO) /* which has been reported */
        log_error("%s: %s", what, strerror(-error));
    f->broken = true;
}

void flight_want_bell(struct flight *f, uint32_t node)
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

void flight_say(struct flight *f, uint32_t to, const struct wire_message *message, bool *busy)
{
    struct letter *letter = malloc(sizeof *letter);
    int error = letter ? 0 : -ENOMEM;
    if (!error) {
        *letter = (struct letter){f, *message, busy};
        error = post_send(f->c.post, &letter->message, wire_length(message), to, TAG_MESSAGE, letter_left, letter);
    }
    if (error) {
        free(letter);
        flight_fail(f, error, "send a message");
        return;
    }
    if (busy)
        *busy = true;
    if (message->kind != WIRE_NEWS)
        flight_want_bell(f, to);
}

void flight_say_all(struct flight *f, const struct wire_message *message)
{
    for (uint32_t i = 0; i < f->c.nodes; i++)
        if (i != f->c.me && !f->peer[i].quit)
            flight_say(f, i, message, NULL);
}

/* --- the server --- */

void flight_take(struct flight *f, const struct ring_message *m)
{
    switch (m->kind) {
    case RING_FETCH:
        fetch_take(f, m);
        return;
    case RING_REPLY:
        serve_reply(f, m);
        return;
    case RING_COMMAND:
        if (m->value == WORLD_DEAL && f->c.me == 0) {
            redeal_want(f, m->token);
            return;
        }
        if (m->value >= WORLD_STAGE && m->value <= WORLD_UMOUNT) {
            struct wire_message say_it = wire_make(WIRE_COMMAND);
            say_it.command = m->value;
            say_it.token = m->token;
            flight_say_all(f, &say_it);
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

static void tell_gone(struct flight *f, uint32_t node)
{
    if (!f->c.link->ending)
        link_push(f->c.link, &(struct ring_message){.kind = RING_GONE, .node = node});
}

/* A new server: its slots are free, and what is open is its to answer. */
static void server_came(struct flight *f)
{
    f->hold = f->c.link->hold;
    memset(f->busy_in, 0, sizeof f->busy_in);
    memset(f->busy_out, 0, sizeof f->busy_out);
    f->live = true;
    f->news_seen = f->heart_seen = 0;
    f->heart_at = clock_now();
    serve_give_all(f);
    give_commands(f);
    for (uint32_t i = 0; i < f->c.nodes; i++)
        if (f->peer[i].gone)
            tell_gone(f, i);
    redeal_server_came(f);
}

static void server_left(struct flight *f)
{
    f->live = false;
    fetch_drop_queued(f); /* what was not sent yet is of no use to the next one */
    if (f->c.link->state != LINK_ENDED)
        serve_wait_all(f);
    redeal_server_left(f);
}

static void server_ended(struct flight *f)
{
    struct wire_message gone = wire_make(WIRE_GONE);
    f->gone_said = true;
    serve_fail_all(f);
    flight_say_all(f, &gone);
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
    redeal_look(f);
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
    fetch_start(f, from);
    if (f->live)
        tell_gone(f, from);
}

static void take_news(struct flight *f, uint32_t from, const struct wire_message *m)
{
    struct node_news news = {0};
    wire_news_to(&news, &m->news);
    news_write(ring_news(&f->c.link->hold->ring, from), &news);
}

static void take_message(struct flight *f, uint32_t from, const struct wire_message *m)
{
    switch (m->kind) {
    case WIRE_FETCH:
        serve_question(f, from, m);
        break;
    case WIRE_WAIT:
        fetch_wait(f, from, m->tag);
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
    case WIRE_DEAL:
    case WIRE_ROOM:
    case WIRE_DEALT:
    case WIRE_SETTLED:
        redeal_message(f, from, m);
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
        flight_fail(f, error, "receive a message");
    if (right)
        take_message(f, from, &m);
    else
        log_limited(LOG_LEVEL_WARNING, 5, "node %" PRIu32 " sent a message of %zu bytes that makes no sense", from, n);
}

/* --- the clock --- */

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
        if (i == f->c.me || f->peer[i].quit)
            continue;
        if (f->peer[i].news_busy) { /* it hears of them with the next pulse */
            memset(&f->news_said, 0, sizeof f->news_said);
            continue;
        }
        flight_say(f, i, &m, &f->peer[i].news_busy);
        if (urgent)
            flight_want_bell(f, i);
    }
}

/* The server writes its news every second, also when they are the same: that is its pulse, and one that has stopped
 * gets no more WAITs said in its name. They are passed on as often where they changed, but at once what staging waits
 * for. */
static void tick_news(struct flight *f, uint64_t now)
{
    struct node_news news;
    const struct node_news *place = f->live ? ring_news(&f->hold->ring, f->c.me) : NULL;
    if (!place || atomic_load_explicit(&place->version, memory_order_relaxed) == f->news_seen ||
        !news_read(place, &news))
        return;
    if (news.version != f->heart_seen)
        f->heart_at = now;
    f->heart_seen = news.version;
    bool urgent = news.staging != f->staging || news.stage_round != f->stage_round;
    if (!urgent && now < f->news_at)
        return; /* to be looked at again when it is time */
    f->news_seen = news.version;
    f->news_at = now + news_every(f);
    say_news(f, &news, urgent);
}

static void tick_bells(struct flight *f, uint64_t now)
{
    for (uint32_t i = 0; f->asked > 0 && i < f->c.nodes; i++) {
        struct peer *peer = &f->peer[i];
        if (peer->asked == 0 || now < peer->ring_at)
            continue;
        flight_want_bell(f, i);
        peer->ring_ms = peer->ring_ms < RING_LAST_MS ? 2 * peer->ring_ms : RING_LAST_MS;
        peer->ring_at = now + peer->ring_ms * MILLISECOND;
    }
}

void flight_tick(struct flight *f, uint64_t now)
{
    serve_tick(f, now);
    tick_news(f, now);
    tick_bells(f, now);
    redeal_tick(f, now);
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
            flight_say(f, i, &quit, NULL);
    f->quit_said = true;
}

bool flight_asks(const struct flight *f)
{
    return f->asked > 0;
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
        fetch_list_init(&f->peer[i].queue);
        fetch_list_init(&f->peer[i].flying);
        f->peer[i].ring_at = UINT64_MAX;
    }
    if (error) {
        flight_destroy(f);
        return error;
    }
    *flight = f;
    return 0;
}

void flight_destroy(struct flight *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; f->peer && i < f->c.nodes; i++) {
        fetch_list_fini(&f->peer[i].queue);
        fetch_list_fini(&f->peer[i].flying);
    }
    serve_free_all(f);
    redeal_fini(f);
    free(f->bell);
    free(f->peer);
    free(f);
}
