/* Rings, and what is done while the world lives: messages, a server that dies, the one that follows it.
 *
 * A server may die and yet keep its socket open, while a thread of it lingers in the kernel; so its process is looked
 * at as well. */
#include "mpi/link-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"

#include <string.h>

#define SECOND UINT64_C(1000000000)
#define MILLISECOND UINT64_C(1000000)

enum { GONE_S = 10, RETRY_MS = 20, PATIENCE_MS = 2000, LOOK_MS = 200 };

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

void hold_fds(const struct hold *hold, int fds[ATTACH_FDS])
{
    fds[0] = hold->ring.memory;
    fds[1] = hold->ring.bell_server;
    fds[2] = hold->ring.bell_courier;
}

void link_init(struct link *l, const char *state, const uint8_t world[16])
{
    *l = (struct link){.path = state, .socket = -1, .server = {0, -1, -1}};
    memcpy(l->world, world, sizeof l->world);
}

void link_hang_up(struct link *l)
{
    l->has_room = l->has_dealt = false;
    if (l->socket >= 0)
        close(l->socket);
    l->socket = -1;
    process_forget(&l->server);
}

void link_fini(struct link *l)
{
    link_hang_up(l);
    hold_put(l->hold);
    l->hold = NULL;
    free(l->late);
    l->late = NULL;
    l->late_count = l->late_room = l->late_first = 0;
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
    link_hang_up(l);
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
    link_hang_up(l);
    forget_late(l);
    l->state = LINK_ENDED;
}

static void ask(struct link *l)
{
    struct attach_hello hello = link_hello(l);
    link_limit(l->socket, 1);
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
    hold_fds(hold, fds);
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
    link_refused(payload, n, &why);
    link_end(l, why.data ? why.data : "it refuses");
}

static bool take_told(const void *payload, size_t n, void *to, size_t room)
{
    if (n == room)
        memcpy(to, payload, n);
    return n == room;
}

static bool take_answer(struct link *l, uint32_t kind, const void *payload, size_t n)
{
    if (kind == ATTACH_ROOM && !l->has_room)
        return l->has_room = take_told(payload, n, &l->room, sizeof l->room);
    if (kind == ATTACH_DEALT && !l->has_dealt)
        return l->has_dealt = take_told(payload, n, &l->dealt, sizeof l->dealt);
    return false;
}

static void take_welcome(struct link *l, const void *payload, size_t n)
{
    struct attach_welcome welcome;
    int error = link_check_welcome(payload, n, &welcome);
    if (!error)
        resume(l, &welcome);
    else
        link_end(l, error == -ESTALE ? "the next server is another version of dealfs" : "it says nonsense");
}

static void take_frame(struct link *l, uint32_t kind, const void *payload, size_t n)
{
    if (l->state == LINK_LIVE && take_answer(l, kind, payload, n))
        return;
    if (kind == ATTACH_END)
        link_end(l, "unmounted");
    else if (kind == ATTACH_REFUSED)
        end_refused(l, payload, n);
    else if (l->state == LINK_ASKED && kind == ATTACH_WELCOME)
        take_welcome(l, payload, n);
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

void link_say(struct link *l, enum attach_kind kind, const void *payload, size_t n)
{
    if (l->state == LINK_LIVE && attach_send(l->socket, kind, payload, n, NULL))
        lose(l, "it does not take a word");
}

static void reconnect(struct link *l, uint64_t now)
{
    int error = link_connect(l);
    if (!error) {
        ask(l);
        return;
    }
    if (l->ending || !link_may_come(error))
        link_end(l, link_may_come(error) ? "no other one has come" : strerror(-error));
    l->next_at = now + RETRY_MS * MILLISECOND;
}

static bool is_between(const struct link *l)
{
    return l->state == LINK_LOST || l->state == LINK_ASKED || l->state == LINK_GIVEN;
}

void link_tick(struct link *l, uint64_t now)
{
    if (is_between(l) && now > l->lost_at + GONE_S * SECOND) {
        link_end(l, "no other one has come");
        return;
    }
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
