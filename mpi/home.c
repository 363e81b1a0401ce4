/* A dead server may keep its socket open while one of its threads lingers in the kernel, so its process is checked
 * as well. */
#include "mpi/home.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { GONE_S = 10, RETRY_MS = 20, PATIENCE_MS = 2000, PAUSE_MS = 3000, LOOK_MS = 250, ERRNO_MOST = 4095 };

struct late_message {
    STAILQ_ENTRY(late_message) next;
    struct ring_message message;
};

int hold_create(uint32_t nodes, struct hold **to)
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

void home_init(struct home *h, const char *state, uint32_t nodes, const uint8_t world[16])
{
    *h = (struct home){
        .path = state, .socket = -1, .server = {0, -1, -1}, .gone_after = clock_bound("DEALFS_SERVER_GONE", GONE_S)};
    for (int i = 0; i < LAYOUTS_HELD; i++)
        h->bytes[i].fd = -1;
    STAILQ_INIT(&h->late);
    memcpy(h->world, world, sizeof h->world);
    tier_view_create(nodes, &h->view);
}

void home_hang_up(struct home *h)
{
    h->ready.number = h->computed.number = 0;
    if (h->view)
        tier_view_close(h->view);
    if (h->socket >= 0)
        close(h->socket);
    h->socket = -1;
    process_forget(&h->server);
    for (struct late_message *late; (late = STAILQ_FIRST(&h->late));) {
        STAILQ_REMOVE_HEAD(&h->late, next);
        free(late);
    }
}

void home_fini(struct home *h)
{
    home_hang_up(h);
    tier_view_destroy(h->view);
    h->view = NULL;
    hold_put(h->hold);
    h->hold = NULL;
    for (int i = 0; i < LAYOUTS_HELD; i++)
        home_hold_layout(h, i, &h->layout, -1);
}

void home_hold_layout(struct home *h, int which, const struct digest *layout, int fd)
{
    struct layout_bytes *bytes = &h->bytes[which];
    if (bytes->fd >= 0)
        close(bytes->fd);
    *bytes = (struct layout_bytes){*layout, fd};
}

/* All nodes have computed the same layout, so the last one that our server computed is it, unless our server died
 * since. */
void home_turn(struct home *h, const struct turn_record *record)
{
    struct layout_bytes *now = &h->bytes[LAYOUT_NOW], *next = &h->bytes[LAYOUT_NEXT];
    int fd = digest_equal(&next->layout, &record->after) ? next->fd : -1;
    if (fd >= 0)
        next->fd = -1;
    home_hold_layout(h, LAYOUT_BEFORE, &now->layout, now->fd);
    now->fd = -1;
    home_hold_layout(h, LAYOUT_NOW, &record->after, fd);
    h->layout = record->after;
    h->last = *record;
}

int home_connect(struct home *h)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    int fd = message_connect(h->path);
    if (fd < 0)
        return fd;
    h->socket = fd;
    h->connection++;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && process_watch(peer.pid, &h->server))
        h->server = (struct process){0, -1, -1};
    return 0;
}

bool home_may_come(int error)
{
    return error == -ENOENT || error == -ECONNREFUSED || error == -EAGAIN;
}

void home_limit(const struct home *h, int seconds)
{
    struct timeval most = {.tv_sec = seconds};
    setsockopt(h->socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    setsockopt(h->socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
}

struct message_hello home_hello(const struct home *h)
{
    struct message_hello hello = {.version = MESSAGE_VERSION};
    snprintf(hello.release, sizeof hello.release, "%s", version_text);
    memcpy(hello.world, h->world, sizeof hello.world);
    return hello;
}

/* --- end of a server, and the next one --- */

static void home_lose(struct home *h, const char *why)
{
    uint64_t now = clock_now();
    if (h->state == HOME_LIVE) {
        h->lost_at = now;
        if (!h->ending)
            log_warning("the server is gone (%s): waiting for the next one", why);
    }
    home_hang_up(h);
    h->state = HOME_LOST;
    h->next_at = now;
}

void home_end(struct home *h, const char *why)
{
    if (h->state == HOME_ENDED)
        return;
    if (!h->ending)
        log_info("this node's server no longer takes part in the world: %s", why);
    home_hang_up(h);
    h->state = HOME_ENDED;
}

static void reconnect(struct home *h, uint64_t now)
{
    struct message_hello hello = home_hello(h);
    int error = home_connect(h);
    h->next_at = now + RETRY_MS * MILLISECOND;
    if (error) {
        if (h->ending || !home_may_come(error))
            home_end(h, home_may_come(error) ? "no other server has started" : strerror(-error));
        return;
    }
    home_limit(h, 1);
    if (message_send(h->socket, MESSAGE_HELLO, &hello, sizeof hello, NULL)) {
        home_lose(h, "it does not accept messages");
        return;
    }
    h->state = HOME_ASKED;
    h->next_at = clock_now() + PATIENCE_MS * MILLISECOND;
}

static void carry_news(const struct ring *from, const struct ring *to, uint32_t me)
{
    for (uint32_t i = 0; i < to->nodes; i++) {
        struct node_news news;
        if (i != me && news_read(ring_news(from, i), &news))
            news_write(ring_news(to, i), &news);
    }
}

static void give_ring(struct home *h)
{
    struct message_resume resume = {.nodes = h->nodes, .me = h->me, .layout = h->layout, .last = h->last};
    struct hold *hold;
    int error = hold_create(h->nodes, &hold);
    if (error) {
        home_lose(h, strerror(-error));
        h->next_at = clock_now() + RETRY_MS * MILLISECOND;
        return;
    }
    memcpy(resume.world, h->world, sizeof resume.world);
    carry_news(&h->hold->ring, &hold->ring, h->me);
    hold_put(h->hold);
    h->hold = hold;
    int fds[MESSAGE_FDS] = {hold->ring.fd[0], hold->ring.fd[1], hold->ring.fd[2], h->bytes[LAYOUT_NOW].fd,
                            h->bytes[LAYOUT_BEFORE].fd};
    if (message_send(h->socket, MESSAGE_RESUME, &resume, sizeof resume, fds)) {
        home_lose(h, "it does not accept the ring");
        return;
    }
    h->state = HOME_GIVEN;
    h->next_at = clock_now() + PATIENCE_MS * MILLISECOND;
}

static void take_welcome(struct home *h, const void *payload, size_t n)
{
    struct message_welcome w;
    int error = message_check_welcome(payload, n, &w);
    if (error)
        home_end(h, error == -ESTALE ? "the next server runs another version of dealfs" : "it sent a malformed answer");
    else if (strcmp(w.node.id, h->welcome.node.id) != 0 || !digest_equal(&w.versions, &h->welcome.versions))
        home_end(h, "another mount answers in its place");
    else
        give_ring(h);
}

static void take_refusal(struct home *h, const void *payload, size_t n)
{
    CLEANUP_STR struct str why = STR_INIT;
    int error = message_refusal(payload, n, &why);
    bool later = error == -ENOMEM && (h->state == HOME_ASKED || h->state == HOME_GIVEN);
    if (!later) {
        home_end(h, why.data ? why.data : "it refused");
        return;
    }
    home_lose(h, "it is out of memory");
    h->next_at = clock_now() + RETRY_MS * MILLISECOND;
}

static bool is_status(int32_t status)
{
    return status <= 0 && status >= -ERRNO_MOST;
}

/* Each answer of a turn is accepted once. The descriptor is taken out of `fd`. */
static bool take_answer(struct home *h, uint32_t kind, const void *payload, size_t n, int *fd)
{
    if (kind == MESSAGE_READY && !h->ready.number && n == sizeof h->ready) {
        memcpy(&h->ready, payload, n);
        return is_status(h->ready.status);
    }
    if (kind == MESSAGE_COMPUTED && !h->computed.number && n == sizeof h->computed) {
        memcpy(&h->computed, payload, n);
        home_hold_layout(h, LAYOUT_NEXT, &h->computed.layout, *fd);
        *fd = -1;
        return is_status(h->computed.status);
    }
    return false;
}

static bool take_share(struct home *h, uint32_t kind, const void *payload, size_t n, int *fd)
{
    if (kind != MESSAGE_SHARED && kind != MESSAGE_SEGMENT)
        return false;
    if (!h->view)
        return true;
    return (kind == MESSAGE_SHARED ? tier_view_open : tier_view_add)(h->view, payload, n, fd) == 0;
}

static void take_frame(struct home *h, uint32_t kind, const void *payload, size_t n, int *fd)
{
    if (h->state == HOME_LIVE && (take_answer(h, kind, payload, n, fd) || take_share(h, kind, payload, n, fd)))
        return;
    if (kind == MESSAGE_END)
        home_end(h, "unmounted");
    else if (kind == MESSAGE_REFUSED)
        take_refusal(h, payload, n);
    else if (h->state == HOME_ASKED && kind == MESSAGE_WELCOME)
        take_welcome(h, payload, n);
    else if (h->state == HOME_GIVEN && kind == MESSAGE_OK) {
        h->state = HOME_LIVE;
        h->next_at = 0;
        log_info("a new server has taken over");
    } else
        home_end(h, "it broke the protocol");
}

void home_readable(struct home *h)
{
    uint32_t kind;
    size_t n;
    int fds[MESSAGE_FDS] = {-1, -1, -1, -1, -1};
    if (h->socket < 0)
        return;
    CLEANUP_FREE void *payload = NULL;
    int error = message_receive(h->socket, &kind, &payload, &n, fds);
    if (error == -EBADMSG || error == -EMSGSIZE)
        home_end(h, "it broke the protocol");
    else if (error)
        home_lose(h, "it hung up");
    else
        take_frame(h, kind, payload, n, &fds[0]);
    for (int i = 0; i < MESSAGE_FDS; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

void home_sayv(struct home *h, enum message_kind kind, const struct iovec *part, int parts)
{
    if (h->state == HOME_LIVE && message_sendv(h->socket, kind, part, parts, NULL))
        home_lose(h, "it does not accept messages");
}

void home_say(struct home *h, enum message_kind kind, const void *payload, size_t n)
{
    home_sayv(h, kind, &(struct iovec){(void *)payload, n}, 1);
}

void home_say_settled(struct home *h, const struct turn_outcome *outcome)
{
    const int fds[MESSAGE_FDS] = {h->bytes[LAYOUT_NOW].fd, -1, -1, -1, -1};
    if (h->state == HOME_LIVE && message_send(h->socket, MESSAGE_SETTLED, outcome, sizeof *outcome, fds))
        home_lose(h, "it does not accept messages");
}

/* Time in which this process was stopped or had no processor does not count: a server may have come meanwhile. */
static void skip_pause(struct home *h, uint64_t now)
{
    uint64_t pause = now - h->ticked_at;
    if (h->ticked_at && pause > PAUSE_MS * MILLISECOND)
        h->lost_at += pause;
    h->ticked_at = now;
}

void home_tick(struct home *h, uint64_t now)
{
    bool between = h->state != HOME_LIVE && h->state != HOME_ENDED;
    skip_pause(h, now);
    if (between && now > h->lost_at + h->gone_after)
        home_end(h, "no other server has started");
    if (now < home_next(h))
        return;
    if (h->state == HOME_LOST) {
        reconnect(h, now);
    } else if (h->state != HOME_LIVE) {
        home_lose(h, "it does not answer");
    } else {
        h->next_at = now + LOOK_MS * MILLISECOND;
        if (h->server.id && process_is_dead(&h->server))
            home_lose(h, "it died");
    }
}

uint64_t home_next(const struct home *h)
{
    return h->state == HOME_ENDED ? UINT64_MAX : h->next_at;
}

/* --- messages --- */

/* False: there is no room. */
static bool push_now(struct home *h, const struct ring_message *message)
{
    int error = ring_push(&h->hold->ring.shared->to_server, h->hold->ring.fd[RING_BELL_SERVER], message);
    if (error && error != -EAGAIN)
        home_end(h, "it broke the protocol of the ring");
    return error != -EAGAIN;
}

void home_push(struct home *h, const struct ring_message *message)
{
    if (h->state != HOME_LIVE || (STAILQ_EMPTY(&h->late) && push_now(h, message)))
        return;
    struct late_message *late = malloc(sizeof *late);
    if (!late) {
        home_end(h, "the courier is out of memory for messages to it");
        return;
    }
    late->message = *message;
    STAILQ_INSERT_TAIL(&h->late, late, next);
}

bool home_flush(struct home *h)
{
    bool some = false;
    struct late_message *late;
    while ((late = STAILQ_FIRST(&h->late)) && push_now(h, &late->message)) {
        some = true;
        if (h->state != HOME_LIVE) /* home_hang_up has freed all of them */
            break;
        STAILQ_REMOVE_HEAD(&h->late, next);
        free(late);
    }
    return some;
}

bool home_take(struct home *h, struct ring_message *message)
{
    int error = h->state == HOME_LIVE ? ring_take(&h->hold->ring.shared->to_courier, message) : -EAGAIN;
    if (error && error != -EAGAIN)
        home_end(h, "it broke the protocol of the ring");
    return error == 0;
}

void home_ask_segment(struct home *h)
{
    uint32_t segment;
    if (h->view && tier_view_wants(h->view, &segment))
        home_say(h, MESSAGE_SEGMENT, &segment, sizeof segment);
}
