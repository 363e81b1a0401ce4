#include "mpi/ask.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/ready.h"
#include "mpi/signals.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    PATIENCE_S = 10,
    ANSWER_S = 120,
    WELCOME_S = 660, /* after a hang a server works without other nodes for ten minutes, and answers no courier */
    QUIET_S = 5,     /* after so long a wait is reported */
    LOOK_MS = 250,
    RETRY_MS = 20,
    SERVERS = 5, /* number of servers that may end during one question */
    PARTS = 3
};

/* A question and its answer. */
struct asking {
    enum message_kind say, hear;
    struct iovec part[PARTS];
    int parts;
    unsigned seconds; /* to wait for the answer; 0: ANSWER_S */
    const int *fds;
    void *payload; /* of the answer */
    size_t n;
    bool asked;
    int got[MESSAGE_FDS]; /* descriptors of the answer */
};

static void asking_fini(struct asking *a)
{
    free(a->payload);
    for (int i = 0; a->asked && i < MESSAGE_FDS; i++)
        if (a->got[i] >= 0)
            close(a->got[i]);
}
#define CLEANUP_ASKING __attribute__((cleanup(asking_fini)))

static int ask_fail(struct str *why, int error, const char *what)
{
    return str_fail(why, error, "%s: %s", what, strerror(-error));
}

/* A server that works without other nodes accepts the connection, and answers nothing. */
static int await_answer(const struct home *h, unsigned seconds)
{
    struct pollfd ready = {.fd = h->socket, .events = POLLIN};
    uint64_t began = clock_now(), deadline = began + seconds * SECOND;
    bool quiet = true;
    while (ready_wait(&ready, 1, LOOK_MS) <= 0) {
        uint64_t now = clock_now();
        signals_obey();
        if (now >= deadline)
            return -ETIMEDOUT;
        if (quiet && now >= began + QUIET_S * SECOND)
            log_warning("the mount's server at %s does not answer yet: waiting for it for up to %u s. After several "
                        "deaths a server works without other nodes for some time; `dealfs status` shows it",
                        h->path, seconds);
        quiet = quiet && now < began + QUIET_S * SECOND;
    }
    return 0;
}

static int ask_server(struct home *h, struct asking *a, struct str *why)
{
    uint32_t kind;
    int error = message_sendv(h->socket, a->say, a->part, a->parts, a->fds);
    memset(a->got, 0xff, sizeof a->got);
    a->asked = true;
    if (error)
        return ask_fail(why, error, "send to the mount's server");
    error = await_answer(h, a->seconds ? a->seconds : ANSWER_S);
    if (!error)
        error = message_receive(h->socket, &kind, &a->payload, &a->n, a->got);
    if (error)
        return ask_fail(why, error == -EAGAIN ? -ETIMEDOUT : error, "the mount's server does not answer");
    if (kind == a->hear)
        return 0;
    if (kind == MESSAGE_REFUSED)
        return message_refusal(a->payload, a->n, why);
    if (kind == MESSAGE_END)
        return ask_fail(why, -ESHUTDOWN, "the mount ends");
    return ask_fail(why, -EPROTO, "the mount's server sent an unexpected answer");
}

static int say_hello(struct home *h, struct str *why)
{
    struct message_hello hello = home_hello(h);
    CLEANUP_ASKING struct asking a = {.say = MESSAGE_HELLO,
                                      .hear = MESSAGE_WELCOME,
                                      .part = {{&hello, sizeof hello}},
                                      .parts = 1,
                                      .seconds = WELCOME_S};
    int error = ask_server(h, &a, why);
    if (error)
        return error;
    error = message_check_welcome(a.payload, a.n, &h->welcome);
    if (error == -ESTALE)
        str_addf(why, "its mount runs dealfs %s, its courier dealfs %s: mount again", h->welcome.release, version_text);
    else if (error)
        ask_fail(why, error, "the mount's server sent a malformed answer");
    return error;
}

static int connect_and_greet(struct home *h, struct str *why)
{
    uint64_t deadline = clock_now() + PATIENCE_S * SECOND;
    int error;
    while (home_may_come(error = home_connect(h)) && clock_now() < deadline)
        clock_sleep(RETRY_MS * MILLISECOND);
    if (home_may_come(error))
        str_addf(why, "no live mount answers at %s/courier", h->path);
    else if (error)
        str_addf(why, "connect to the mount at %s/courier: %s", h->path, strerror(-error));
    if (error)
        return error;
    home_limit(h, ANSWER_S);
    error = say_hello(h, why);
    if (error)
        home_hang_up(h);
    return error;
}

/* Has a server ended, whose successor can be asked the same? */
static bool ask_next(int error, int *servers, struct str *why)
{
    if (error != -ECONNRESET || ++*servers == SERVERS)
        return false;
    log_warning("the mount's server ended while the world formed: waiting for the next one");
    str_clear(why);
    return true;
}

int ask_hello(struct home *h, struct str *why)
{
    int error, servers = 0;
    do
        error = connect_and_greet(h, why);
    while (ask_next(error, &servers, why));
    return error;
}

/* Other nodes already know what the previous server said. */
static int greet_next(struct home *h, struct str *why)
{
    const struct message_welcome before = h->welcome;
    home_hang_up(h);
    int error = ask_hello(h, why);
    if (!error && (strcmp(h->welcome.node.id, before.node.id) != 0 || h->welcome.extents != before.extents ||
                   !digest_equal(&h->welcome.versions, &before.versions)))
        error = str_fail(why, -ESTALE, "another mount answers in place of the previous one");
    return error;
}

int ask_resize(struct home *h, const char *path, int courier, struct str *why)
{
    const int fds[MESSAGE_FDS] = {courier, -1, -1};
    CLEANUP_ASKING struct asking a = {
        .say = MESSAGE_RESIZE, .hear = MESSAGE_OK, .part = {{(void *)path, strlen(path)}}, .parts = 1, .fds = fds};
    return ask_server(h, &a, why);
}

int ask_take_catalog(struct home *h, const char *path, struct str *why)
{
    CLEANUP_ASKING struct asking a = {
        .say = MESSAGE_CATALOG, .hear = MESSAGE_OK, .part = {{(void *)path, strlen(path)}}, .parts = 1};
    int error = ask_server(h, &a, why);
    return error ? error : say_hello(h, why);
}

static int get_holdings(struct home *h, struct holding *holding, uint64_t **words, struct str *why)
{
    CLEANUP_ASKING struct asking a = {.say = MESSAGE_HOLDINGS, .hear = MESSAGE_HOLDINGS};
    size_t bytes = claims_words(h->welcome.extents) * sizeof **words;
    int error = ask_server(h, &a, why);
    if (error)
        return error;
    if (a.n != sizeof *holding + bytes)
        return ask_fail(why, -EPROTO, "the mount's server sent a malformed list of its cached data");
    *words = malloc(bytes + 1);
    if (!*words)
        return -ENOMEM;
    memcpy(holding, a.payload, sizeof *holding);
    memcpy(*words, (struct holding *)a.payload + 1, bytes);
    return 0;
}

int ask_holdings(struct home *h, struct holding *holding, uint64_t **words, struct str *why)
{
    int error = get_holdings(h, holding, words, why), servers = 0;
    while (ask_next(error, &servers, why)) {
        error = greet_next(h, why);
        if (!error)
            error = get_holdings(h, holding, words, why);
    }
    return error;
}

static int get_layout(struct home *h, const struct ask_world *w, struct str *why)
{
    struct message_world head = {.nodes = w->nodes, .groups = w->groups, .me = w->me, .held = w->holder != NULL};
    CLEANUP_ASKING struct asking a = {
        .say = MESSAGE_WORLD,
        .hear = MESSAGE_LAYOUT,
        .part = {{&head, sizeof head},
                 {(void *)w->member, w->nodes * sizeof *w->member},
                 {(void *)w->holder, w->groups * h->welcome.extents * sizeof *w->holder}},
        .parts = w->holder ? 3 : 2,
    };
    hold_put(steal_pointer(h->hold)); /* of a server that has ended */
    int error = hold_create(w->nodes, &h->hold);
    if (error)
        return ask_fail(why, error, "make the ring");
    memcpy(head.world, h->world, sizeof head.world);
    const int fds[MESSAGE_FDS] = {h->hold->ring.fd[0], h->hold->ring.fd[1], h->hold->ring.fd[2], -1, -1};
    a.fds = fds;
    error = ask_server(h, &a, why);
    if (!error && a.n != sizeof h->layout)
        error = ask_fail(why, -EPROTO, "the mount's server sent a malformed layout");
    if (error)
        return error;
    memcpy(&h->layout, a.payload, a.n);
    home_hold_layout(h, LAYOUT_NOW, &h->layout, a.got[0]);
    a.got[0] = -1;
    h->me = w->me;
    h->nodes = w->nodes;
    return 0;
}

int ask_layout(struct home *h, const struct ask_world *w, struct str *why)
{
    int error = get_layout(h, w, why), servers = 0;
    while (ask_next(error, &servers, why)) {
        error = greet_next(h, why);
        if (!error)
            error = get_layout(h, w, why);
    }
    return error;
}

/* If the server ends now, it is like a server of a world that is up: home.c waits for the next one. */
int ask_live(struct home *h, struct str *why)
{
    CLEANUP_ASKING struct asking a = {.say = MESSAGE_LIVE, .hear = MESSAGE_OK};
    int error = ask_server(h, &a, why);
    if (error && error != -ECONNRESET)
        return error;
    str_clear(why);
    h->state = HOME_LIVE;
    home_limit(h, 1); /* from now on only read what is already there */
    return 0;
}
