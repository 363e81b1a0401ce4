/* The conversation with the server, the ring, and what is done when the server is gone.
 *
 * A server may die and yet keep its socket open, while a thread of it lingers in the kernel; so its process is looked at
 * as well. */
#include "mpi/link.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define SECOND UINT64_C(1000000000)
#define MILLISECOND UINT64_C(1000000)

enum { ANSWER_S = 120, GONE_S = 10, RETRY_MS = 20, PATIENCE_MS = 2000, LOOK_MS = 200 };

/* --- rings --- */

struct hold *hold_get(struct hold *hold)
{
    hold->users++;
    return hold;
}

void hold_put(struct hold *hold)
{
    if (!hold || --hold->users)
        return;
    ring_close(&hold->ring);
    free(hold);
}

static int hold_create(uint32_t nodes, struct hold **to)
{
    struct hold *hold = calloc(1, sizeof *hold);
    if (!hold)
        return -ENOMEM;
    int error = ring_create(&hold->ring, nodes);
    if (error) {
        free(hold);
        return error;
    }
    hold->users = 1;
    *to = hold;
    return 0;
}

static void ring_fds(const struct hold *hold, int fds[ATTACH_FDS])
{
    fds[0] = hold->ring.memory;
    fds[1] = hold->ring.bell_server;
    fds[2] = hold->ring.bell_courier;
}

/* --- the conversation --- */

void link_init(struct link *l, const char *state, const uint8_t world[16])
{
    *l = (struct link){.path = state, .socket = -1, .server = {0, -1, -1}};
    memcpy(l->world, world, sizeof l->world);
}

static void hang_up(struct link *l)
{
    if (l->socket >= 0)
        close(l->socket);
    l->socket = -1;
    process_forget(&l->server);
}

void link_fini(struct link *l)
{
    hang_up(l);
    hold_put(l->hold);
    l->hold = NULL;
    free(l->late);
    l->late = NULL;
    l->late_count = l->late_room = l->late_first = 0;
}

static int say(struct str *why, int error, const char *what)
{
    str_addf(why, "%s: %s", what, strerror(-error));
    return error;
}

static int refused(const void *payload, size_t n, struct str *why)
{
    uint32_t code = EIO;
    const char *words = payload;
    if (n >= sizeof code) {
        memcpy(&code, payload, sizeof code);
        words += sizeof code;
        n -= sizeof code;
    } else {
        n = 0;
    }
    n = strnlen(words, n);
    if (n)
        str_add_printable(why, words, n);
    else
        str_addf(why, "its server refuses: %s", strerror((int)code));
    return code && code < 4096 ? -(int)code : -EIO;
}

/* A frame of this kind is wanted; its payload is then the caller's, else there is none. */
static int hear(struct link *l, enum attach_kind wanted, void **payload, size_t *n, struct str *why)
{
    uint32_t kind;
    *payload = NULL;
    int error = attach_receive(l->socket, &kind, payload, n, NULL);
    if (error == -EAGAIN)
        error = -ETIMEDOUT;
    if (error)
        return say(why, error, "the mount's server does not answer");
    if (kind == wanted)
        return 0;
    if (kind == ATTACH_REFUSED)
        error = refused(*payload, *n, why);
    else if (kind == ATTACH_END)
        error = say(why, -ESHUTDOWN, "the mount ends");
    else
        error = say(why, -EPROTO, "the mount's server answers something else");
    free(steal_pointer(*payload));
    return error;
}

static int converse(struct link *l, enum attach_kind kind, const struct iovec *part, int parts, const int *fds,
                    enum attach_kind wanted, void **payload, size_t *n, struct str *why)
{
    int error = attach_sendv(l->socket, kind, part, parts, fds);
    if (error)
        return say(why, error, "speak to the mount's server");
    return hear(l, wanted, payload, n, why);
}

static bool is_text(const char *text, size_t room)
{
    return strnlen(text, room) < room;
}

static int check_welcome(const void *payload, size_t n, struct attach_welcome *to)
{
    struct attach_welcome w;
    if (n != sizeof w)
        return -EPROTO;
    memcpy(&w, payload, sizeof w);
    if (w.version != ATTACH_VERSION || w.waiting > 1 || !is_text(w.release, sizeof w.release) ||
        !is_text(w.node.id, sizeof w.node.id) || !is_text(w.node.host, sizeof w.node.host) ||
        !is_text(w.mountpoint, sizeof w.mountpoint))
        return -EPROTO;
    if (strcmp(w.release, DEALFS_VERSION) != 0)
        return -ESTALE;
    *to = w;
    return 0;
}

static struct attach_hello make_hello(const struct link *l)
{
    struct attach_hello hello = {.version = ATTACH_VERSION, .release = DEALFS_VERSION};
    memcpy(hello.world, l->world, sizeof hello.world);
    return hello;
}

static int greet(struct link *l, struct str *why)
{
    struct attach_hello hello = make_hello(l);
    CLEANUP_FREE void *payload = NULL;
    size_t n;
    int error = converse(l, ATTACH_HELLO, &(struct iovec){&hello, sizeof hello}, 1, NULL, ATTACH_WELCOME, &payload, &n, why);
    if (error)
        return error;
    error = check_welcome(payload, n, &l->welcome);
    if (error == -ESTALE)
        str_adds(why, "its mount was made by another version of dealfs than its courier: mount it again");
    else if (error)
        say(why, error, "the mount's server says nonsense");
    return error;
}

static void limit(int socket, int seconds)
{
    struct timeval most = {.tv_sec = seconds};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
}

static int try_connect(struct link *l)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    int fd = attach_connect(l->path);
    if (fd < 0)
        return fd;
    l->socket = fd;
    l->connection++;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && process_watch(peer.pid, &l->server))
        l->server = (struct process){0, -1, -1};
    return 0;
}

static bool may_come(int error)
{
    return error == -ENOENT || error == -ECONNREFUSED;
}

int link_open(struct link *l, uint64_t patience, struct str *why)
{
    uint64_t began = clock_now();
    int error = try_connect(l);
    while (may_come(error) && clock_now() - began < patience) {
        nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * MILLISECOND}, NULL);
        error = try_connect(l);
    }
    if (may_come(error)) {
        str_addf(why, "no live mount answers at %s/courier", l->path);
        return error;
    }
    if (error) {
        str_addf(why, "connect to the mount at %s/courier: %s", l->path, strerror(-error));
        return error;
    }
    limit(l->socket, ANSWER_S);
    error = greet(l, why);
    if (error)
        hang_up(l);
    return error;
}

int link_give_catalog(struct link *l, const char *path, struct str *why)
{
    CLEANUP_FREE void *payload = NULL;
    size_t n;
    struct iovec part = {(void *)path, strlen(path)};
    int error = converse(l, ATTACH_CATALOG, &part, 1, NULL, ATTACH_OK, &payload, &n, why);
    return error ? error : greet(l, why);
}

static size_t words_of(const struct link *l)
{
    return (l->welcome.extents + 63) / 64;
}

int link_holdings(struct link *l, uint64_t **words, struct str *why)
{
    void *payload;
    size_t n;
    int error = converse(l, ATTACH_HOLDINGS, NULL, 0, NULL, ATTACH_HOLDINGS, &payload, &n, why);
    if (error)
        return error;
    if (n != words_of(l) * sizeof **words) {
        free(payload);
        return say(why, -EPROTO, "the mount's server says nonsense about what it holds");
    }
    *words = payload;
    return 0;
}

static int hear_digest(const void *payload, size_t n, struct digest *to, struct str *why)
{
    if (n != sizeof *to)
        return say(why, -EPROTO, "the mount's server says nonsense about the directory");
    memcpy(to, payload, n);
    return 0;
}

int link_world(struct link *l, uint32_t me, uint32_t nodes, uint32_t groups, const struct world_node *node,
               uint64_t *const *holdings, struct str *why)
{
    struct attach_world head = {.nodes = nodes, .groups = groups, .me = me};
    CLEANUP_FREE struct iovec *part = calloc((size_t)nodes + 2, sizeof *part);
    CLEANUP_FREE uint64_t *nothing = calloc(words_of(l) + 1, sizeof *nothing);
    CLEANUP_FREE void *payload = NULL;
    int fds[ATTACH_FDS];
    size_t n;
    int error = part && nothing ? hold_create(nodes, &l->hold) : -ENOMEM;
    if (error)
        return say(why, error, "make the ring");
    memcpy(head.world, l->world, sizeof head.world);
    part[0] = (struct iovec){&head, sizeof head};
    part[1] = (struct iovec){(void *)node, nodes * sizeof *node};
    for (uint32_t i = 0; i < nodes; i++)
        part[i + 2] = (struct iovec){holdings[i] ? holdings[i] : nothing, words_of(l) * sizeof *nothing};
    ring_fds(l->hold, fds);
    error = converse(l, ATTACH_WORLD, part, (int)nodes + 2, fds, ATTACH_DIRECTORY, &payload, &n, why);
    if (error)
        return error;
    l->me = me;
    l->nodes = nodes;
    return hear_digest(payload, n, &l->directory, why);
}

int link_live(struct link *l, struct str *why)
{
    CLEANUP_FREE void *payload = NULL;
    size_t n;
    int error = converse(l, ATTACH_LIVE, NULL, 0, NULL, ATTACH_OK, &payload, &n, why);
    if (error)
        return error;
    l->state = LINK_LIVE;
    limit(l->socket, 1); /* only what can be read is read from now on */
    return 0;
}

/* --- in the event loop --- */

static void forget_late(struct link *l)
{
    l->late_first = l->late_count = 0;
}

static void lose(struct link *l, const char *why)
{
    uint64_t now = clock_now();
    if (l->state == LINK_LIVE) {
        l->lost_at = now;
        if (!l->ending)
            log_warning("the server is gone (%s): waiting for the next one", why);
    }
    hang_up(l);
    forget_late(l);
    l->state = LINK_LOST;
    l->next_at = now;
}

void link_end(struct link *l, const char *why)
{
    if (l->state == LINK_ENDED)
        return;
    if (!l->ending)
        log_info("this node's server is out of the world: %s", why);
    hang_up(l);
    forget_late(l);
    l->state = LINK_ENDED;
}

static void ask(struct link *l)
{
    struct attach_hello hello = make_hello(l);
    limit(l->socket, 1);
    if (attach_send(l->socket, ATTACH_HELLO, &hello, sizeof hello, NULL)) {
        lose(l, "it does not take a word");
        return;
    }
    l->state = LINK_ASKED;
    l->next_at = clock_now() + PATIENCE_MS * MILLISECOND;
}

static void carry_news(const struct hold *from, const struct hold *to, uint32_t me)
{
    for (uint32_t i = 0; i < to->ring.nodes; i++) {
        struct node_news news;
        if (i != me && news_read(ring_news(&from->ring, i), &news))
            news_write(ring_news(&to->ring, i), &news);
    }
}

static void resume(struct link *l, const struct attach_welcome *welcome)
{
    struct attach_resume r = {.nodes = l->nodes, .me = l->me, .directory = l->directory};
    struct hold *hold;
    int fds[ATTACH_FDS];
    if (strcmp(welcome->node.id, l->welcome.node.id) != 0 ||
        memcmp(&welcome->catalog, &l->welcome.catalog, sizeof welcome->catalog) != 0) {
        link_end(l, "another mount answers in its place");
        return;
    }
    int error = hold_create(l->nodes, &hold);
    if (error) {
        lose(l, strerror(-error));
        l->next_at = clock_now() + RETRY_MS * MILLISECOND;
        return;
    }
    memcpy(r.world, l->world, sizeof r.world);
    carry_news(l->hold, hold, l->me);
    hold_put(l->hold);
    l->hold = hold;
    ring_fds(hold, fds);
    if (attach_send(l->socket, ATTACH_RESUME, &r, sizeof r, fds)) {
        lose(l, "it does not take a ring");
        return;
    }
    l->state = LINK_GIVEN;
    l->next_at = clock_now() + PATIENCE_MS * MILLISECOND;
}

static void end_refused(struct link *l, const void *payload, size_t n)
{
    CLEANUP_STR struct str why = STR_INIT;
    refused(payload, n, &why);
    link_end(l, why.data ? why.data : "it refuses");
}

static void take_frame(struct link *l, uint32_t kind, const void *payload, size_t n)
{
    struct attach_welcome welcome;
    if (kind == ATTACH_END)
        link_end(l, "unmounted");
    else if (kind == ATTACH_REFUSED)
        end_refused(l, payload, n);
    else if (l->state == LINK_ASKED && kind == ATTACH_WELCOME && check_welcome(payload, n, &welcome) == 0)
        resume(l, &welcome);
    else if (l->state == LINK_GIVEN && kind == ATTACH_OK) {
        l->state = LINK_LIVE;
        log_info("a new server has taken over");
    } else
        link_end(l, "it breaks the rules of the conversation");
}

void link_readable(struct link *l)
{
    uint32_t kind;
    size_t n;
    if (l->socket < 0)
        return;
    CLEANUP_FREE void *payload = NULL;
    int error = attach_receive(l->socket, &kind, &payload, &n, NULL);
    if (error == -EBADMSG || error == -EMSGSIZE)
        link_end(l, "it breaks the rules of the conversation");
    else if (error)
        lose(l, "it hung up");
    else
        take_frame(l, kind, payload, n);
}

static void reconnect(struct link *l, uint64_t now)
{
    int error = try_connect(l);
    if (!error) {
        ask(l);
        return;
    }
    if (l->ending || !may_come(error) || now - l->lost_at > GONE_S * SECOND)
        link_end(l, may_come(error) ? "no other one has come" : strerror(-error));
    l->next_at = now + RETRY_MS * MILLISECOND;
}

void link_tick(struct link *l, uint64_t now)
{
    switch (l->state) {
    case LINK_LOST:
        if (now >= l->next_at)
            reconnect(l, now);
        break;
    case LINK_ASKED:
    case LINK_GIVEN:
        if (now >= l->next_at)
            lose(l, "it does not answer");
        break;
    case LINK_LIVE:
        if (now - l->looked_at < LOOK_MS * MILLISECOND)
            break;
        l->looked_at = now;
        if (l->server.id && process_is_dead(&l->server))
            lose(l, "it died");
        break;
    case LINK_ENDED:
        break;
    }
}

uint64_t link_next(const struct link *l)
{
    switch (l->state) {
    case LINK_LIVE:
        return l->looked_at + LOOK_MS * MILLISECOND;
    case LINK_ENDED:
        return UINT64_MAX;
    default:
        return l->next_at;
    }
}

/* --- messages --- */

static bool push_now(struct link *l, const struct ring_message *message)
{
    int error = ring_push(&l->hold->ring.shared->to_server, l->hold->ring.bell_server, message);
    if (error && error != -EAGAIN)
        link_end(l, "it breaks the rules of the ring");
    return error != -EAGAIN;
}

static int make_room(struct link *l)
{
    if (l->late_first > 0 && l->late_first + l->late_count == l->late_room) {
        memmove(l->late, l->late + l->late_first, l->late_count * sizeof *l->late);
        l->late_first = 0;
    }
    if (l->late_first + l->late_count < l->late_room)
        return 0;
    size_t room = l->late_room ? 2 * l->late_room : RING_QUEUE;
    struct ring_message *bigger = reallocarray(l->late, room, sizeof *bigger);
    if (!bigger)
        return -ENOMEM;
    l->late = bigger;
    l->late_room = room;
    return 0;
}

void link_push(struct link *l, const struct ring_message *message)
{
    if (l->state != LINK_LIVE || (l->late_count == 0 && push_now(l, message)))
        return;
    if (make_room(l))
        link_end(l, "there is no memory for what it is to be told");
    else
        l->late[l->late_first + l->late_count++] = *message;
}

bool link_flush(struct link *l)
{
    bool some = false;
    while (l->state == LINK_LIVE && l->late_count > 0 && push_now(l, &l->late[l->late_first])) {
        some = true;
        if (l->late_count == 0)
            break;
        l->late_first++;
        l->late_count--;
    }
    return some;
}

bool link_take(struct link *l, struct ring_message *message)
{
    int error = l->state == LINK_LIVE ? ring_take(&l->hold->ring.shared->to_courier, message) : -EAGAIN;
    if (error && error != -EAGAIN)
        link_end(l, "it breaks the rules of the ring");
    return error == 0;
}
