/* The conversation with the courier, over STATE/courier; what is said in which order stands in attach.h.
 *
 * Threads: one, which listens, reads frames and answers them, and ends a world when the courier hangs up, errs, or the
 * mount ends. It computes directories, so it can be busy for a while; whoever waits for time waits for another thread.
 * Walks over all extents or files look every STEP of them whether somebody still waits for the thread's work.
 *
 *   nobody ──▶ TALK_NEW ──HELLO──▶ TALK_GREETED ──WORLD──▶ TALK_READY ──LIVE──▶ TALK_LIVE
 *                     (CATALOG, HELLO again) │                                      ▲
 *                                            └────────────────RESUME────────────────┘
 *
 * One courier is talked to at a time; others are refused with EBUSY. */
#include "fs/world/attach.h"
#include "fs/world/inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"

#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>

enum { FRAME_SECONDS = 30, STRANGER_MS = 1000, STEP = 4096, TIERS_MS = 15000, TIERS_POLL_MS = 20, WORDS = 512 };

struct talk {
    struct peers *peers;
    int listening, wake; /* wake: an eventfd: `stop`, or the link is broken */
    atomic_bool stop, broken;
    bool running;
    pthread_t thread;
    /* the thread's own: */
    int courier; /* socket; -1: nobody */
    uint32_t process;
    enum { TALK_NEW, TALK_GREETED, TALK_READY, TALK_LIVE } state;
    struct attach_hello hello;
    struct link *link; /* from READY on */
};

/* A frame that came. */
struct said {
    uint32_t kind;
    void *payload;
    size_t n;
    int fds[ATTACH_FDS];
};

static void said_fini(struct said *s)
{
    free(s->payload);
    for (int i = 0; i < ATTACH_FDS; i++)
        if (s->fds[i] >= 0)
            close(s->fds[i]);
}

/* -ECANCELED: the courier was told why. */
static int refuse_on(int socket, int error, const char *format, va_list args)
{
    char words[sizeof(uint32_t) + WORDS];
    uint32_t number = (uint32_t)-error;
    memcpy(words, &number, sizeof number);
    vsnprintf(words + sizeof number, WORDS, format, args);
    log_warning("a courier was refused: %s", words + sizeof number);
    attach_send(socket, ATTACH_REFUSED, words, sizeof number + strlen(words + sizeof number), NULL);
    return -ECANCELED;
}

static int __attribute__((format(printf, 3, 4))) refuse(struct talk *t, int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int told = refuse_on(t->courier, error, format, args);
    va_end(args);
    return told;
}

static void __attribute__((format(printf, 3, 4))) refuse_stranger(int socket, int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    refuse_on(socket, error, format, args);
    va_end(args);
}

/* The end of a world, or of a conversation before one. */
static void hang_up(struct talk *t, const char *why)
{
    bool live = t->state == TALK_LIVE;
    if (live)
        peers_leave(t->peers);
    if (t->link) {
        link_stop(t->link);
        link_put(t->link);
        t->link = NULL;
    }
    if (live && !atomic_load(&t->stop))
        log_warning("%s: what other nodes keep is read from the source until they are joined again", why);
    if (t->courier >= 0)
        close(t->courier);
    t->courier = -1;
    t->state = TALK_NEW;
    atomic_store(&t->broken, false);
}

/* What is asked. */

static void fill_text(char *to, size_t n, const char *from)
{
    size_t length = strlen(from);
    memset(to, 0, n);
    memcpy(to, from, length < n ? length : n - 1);
}

static int on_hello(struct talk *t, const struct said *s)
{
    struct peers *p = t->peers;
    const struct peers_config *c = &p->config;
    struct attach_welcome w = {.version = ATTACH_VERSION, .waiting = !p->store, .options = c->options};
    if (s->n != sizeof t->hello)
        return -EBADMSG;
    memcpy(&t->hello, s->payload, sizeof t->hello);
    t->hello.release[VERSION_TEXT - 1] = '\0';
    if (t->hello.version != ATTACH_VERSION)
        return refuse(t, -EPROTO, "the server of %s is dealfs %s, the courier dealfs %s", c->mountpoint, DEALFS_VERSION,
                      t->hello.release);
    fill_text(w.release, sizeof w.release, DEALFS_VERSION);
    fill_text(w.node.id, sizeof w.node.id, c->id);
    fill_text(w.node.host, sizeof w.node.host, c->host);
    fill_text(w.mountpoint, sizeof w.mountpoint, c->mountpoint);
    w.peer_timeout = c->peer_timeout;
    if (p->store) {
        bool opening;
        peers_capacity(p, &w.node.capacity, &opening);
        w.catalog = *catalog_digest(c->catalog);
        w.extents = extents_count(p->extents);
    }
    t->state = TALK_GREETED;
    return attach_send(t->courier, ATTACH_WELCOME, &w, sizeof w, NULL);
}

/* A tier that the server before this one still has open is not known yet. */
static void wait_for_tiers(struct talk *t)
{
    uint64_t capacity, begin = clock_now();
    bool opening = true;
    while (!atomic_load(&t->stop) && clock_now() - begin < TIERS_MS * UINT64_C(1000000)) {
        peers_capacity(t->peers, &capacity, &opening);
        if (!opening)
            return;
        struct pollfd wake = {.fd = t->wake, .events = POLLIN};
        poll(&wake, 1, TIERS_POLL_MS);
    }
}

/* Whether there is nobody any more for whom the thread works. */
static bool is_over(struct talk *t)
{
    struct pollfd courier = {.fd = t->courier};
    return atomic_load(&t->stop) || atomic_load(&t->broken) || (poll(&courier, 1, 0) == 1 && courier.revents & POLLHUP);
}

static bool holds_any(struct peers *p, uint64_t extent)
{
    uint64_t from, to;
    uint32_t file = extents_file(p->extents, extent, &from, &to);
    bool whole = catalog_file(p->config.catalog, file).size <= PIECE_BYTES;
    for (uint64_t at = from; at < to; at = whole ? to : at + VALUE_BYTES)
        if (store_holds(p->store, file, at))
            return true;
    return false;
}

static int on_holdings(struct talk *t)
{
    struct peers *p = t->peers;
    wait_for_tiers(t);
    uint64_t extents = extents_count(p->extents), words = (extents + 63) / 64;
    CLEANUP_FREE uint64_t *bits = calloc(words ? words : 1, sizeof *bits);
    if (!bits)
        return refuse(t, -ENOMEM, "the server of %s has no memory", p->config.mountpoint);
    for (uint64_t e = 0; e < extents; e++) {
        if (e % STEP == 0 && is_over(t))
            return -ECONNRESET;
        if (holds_any(p, e))
            bits[e / 64] |= UINT64_C(1) << e % 64;
    }
    return attach_send(t->courier, ATTACH_HOLDINGS, bits, words * sizeof *bits, NULL);
}

/* A directory of what the frame holds, which must be exactly that many nodes and holdings. */
struct told_world {
    struct attach_world head;
    const struct world_node *node;
    const uint64_t *holdings;
};

static bool take_world(const struct said *s, uint64_t words, struct told_world *w)
{
    if (s->n < sizeof w->head)
        return false;
    memcpy(&w->head, s->payload, sizeof w->head);
    uint64_t nodes = w->head.nodes;
    if (!nodes || nodes > NODES_MOST || !w->head.groups || w->head.groups > nodes || w->head.me >= nodes ||
        s->n != sizeof w->head + nodes * (sizeof *w->node + words * sizeof *w->holdings))
        return false;
    w->node = (const struct world_node *)((const char *)s->payload + sizeof w->head);
    w->holdings = (const uint64_t *)(w->node + nodes);
    for (uint32_t i = 0; i < nodes; i++)
        if (w->node[i].id[NODE_ID - 1] || w->node[i].host[NODE_HOST - 1])
            return false;
    return true;
}
_Static_assert(sizeof(struct attach_world) % 8 == 0 && sizeof(struct world_node) % 8 == 0, "bitmaps are aligned");

static int compute(struct peers *p, const struct told_world *w, uint64_t words, struct directory **directory)
{
    uint32_t nodes = w->head.nodes;
    CLEANUP_FREE const uint64_t **holdings = calloc(nodes, sizeof *holdings);
    if (!holdings)
        return -ENOMEM;
    for (uint32_t i = 0; i < nodes; i++)
        holdings[i] = w->holdings + i * words;
    struct directory_input input = {
        .catalog = p->config.catalog,
        .extents = p->extents,
        .nodes = nodes,
        .groups = w->head.groups,
        .node = w->node,
        .holdings = holdings,
    };
    return directory_compute(&input, directory);
}

/* The ring goes with the frame. */
static int make_link(struct talk *t, struct world *w, struct said *s)
{
    struct ring ring;
    int error = ring_open(&ring, steal_fd(s->fds[0]), steal_fd(s->fds[1]), steal_fd(s->fds[2]));
    if (error)
        return error;
    if (ring.nodes != w->nodes) {
        ring_close(&ring);
        return -EBADMSG;
    }
    return link_create(t->peers, w, &ring, &t->link);
}

static int on_world(struct talk *t, struct said *s)
{
    struct peers *p = t->peers;
    uint64_t words = (extents_count(p->extents) + 63) / 64;
    struct told_world told;
    struct directory *directory;
    struct world *w;
    if (!take_world(s, words, &told))
        return -EBADMSG;
    if (strcmp(told.node[told.head.me].id, p->config.id))
        return refuse(t, -EINVAL, "node %u is not this node, %s", told.head.me, p->config.mountpoint);
    if (p->config.groups && p->config.groups != told.head.groups)
        return refuse(t, -EINVAL, "%s was mounted with groups=%u, the world has %u", p->config.mountpoint,
                      p->config.groups, told.head.groups);
    int error = compute(p, &told, words, &directory);
    if (error)
        return refuse(t, error, "compute the directory: %s", strerror(-error));
    error = world_save_directory(p->config.state, directory);
    if (error) {
        directory_close(directory);
        return refuse(t, error, "save the directory in %s: %s", p->config.state, strerror(-error));
    }
    error = world_create(told.head.world, told.head.me, directory, &w);
    if (!error) {
        error = make_link(t, w, s);
        world_put(w);
    }
    if (error)
        return error == -ENOMEM ? refuse(t, error, "the server of %s has no memory", p->config.mountpoint) : error;
    t->state = TALK_READY;
    const struct digest *digest = directory_digest(t->link->world->directory);
    return attach_send(t->courier, ATTACH_DIRECTORY, digest, sizeof *digest, NULL);
}

static uint64_t trim(struct talk *t, bool only_count)
{
    uint64_t bytes = 0;
    uint32_t files = catalog_files(t->peers->config.catalog);
    for (uint32_t file = 0; file < files && !is_over(t); file += STEP)
        bytes += store_trim(t->peers->store, file, STEP, only_count);
    return bytes;
}

/* What is held and another node's is given up where its room is needed. */
static void make_room(struct talk *t, const struct world *w)
{
    struct peers *p = t->peers;
    uint64_t capacity;
    bool opening;
    peers_capacity(p, &capacity, &opening);
    uint64_t foreign = trim(t, true);
    if (!foreign || w->owned[w->me] + foreign <= capacity)
        return;
    uint64_t dropped = trim(t, false);
    log_info("%llu bytes that other nodes keep were dropped", (unsigned long long)dropped);
}

static int go_live(struct talk *t)
{
    struct peers *p = t->peers;
    struct link *l = t->link;
    int error = world_save(p->config.state, l->world);
    if (!error)
        error = link_start(l);
    if (error)
        return refuse(t, error, "join the world: %s", strerror(-error));
    t->state = TALK_LIVE;
    peers_join(p, l, t->process);
    log_info("joined: node %u of %u", l->world->me, l->world->nodes);
    error = attach_send(t->courier, ATTACH_OK, NULL, 0, NULL);
    if (!error)
        make_room(t, l->world);
    return error;
}

static int on_resume(struct talk *t, struct said *s)
{
    struct peers *p = t->peers;
    struct attach_resume r;
    if (s->n != sizeof r)
        return -EBADMSG;
    memcpy(&r, s->payload, sizeof r);
    struct world *w = peers_world(p);
    bool same = w && !memcmp(w->uuid, r.world, sizeof r.world) && w->nodes == r.nodes && w->me == r.me &&
                !memcmp(directory_digest(w->directory), &r.directory, sizeof r.directory);
    int error = same ? make_link(t, w, s) : 0;
    world_put(w);
    if (!same)
        return refuse(t, -ESTALE, "%s is in another world, or in none", p->config.mountpoint);
    return error ? error : go_live(t);
}

static int on_catalog(struct talk *t, const struct said *s)
{
    const struct peers_config *c = &t->peers->config;
    if (!s->n || memchr(s->payload, 0, s->n))
        return -EBADMSG;
    int error = c->install(c->user, s->payload);
    if (error)
        return refuse(t, error, "%s: install the catalog %s: %s", c->mountpoint, (const char *)s->payload,
                      strerror(-error));
    return attach_send(t->courier, ATTACH_OK, NULL, 0, NULL);
}

static int answer(struct talk *t, struct said *s)
{
    bool filled = t->peers->store;
    if (s->kind == ATTACH_HELLO && t->state <= TALK_GREETED)
        return on_hello(t, s);
    if (s->kind == ATTACH_CATALOG && t->state == TALK_GREETED && !filled)
        return on_catalog(t, s);
    if (s->kind == ATTACH_HOLDINGS && t->state == TALK_GREETED && filled)
        return on_holdings(t);
    if (s->kind == ATTACH_WORLD && t->state == TALK_GREETED && filled)
        return on_world(t, s);
    if (s->kind == ATTACH_LIVE && t->state == TALK_READY)
        return go_live(t);
    if (s->kind == ATTACH_RESUME && t->state == TALK_GREETED && filled)
        return on_resume(t, s);
    return -EBADMSG;
}

/* The thread. */

static void read_frame(struct talk *t)
{
    struct said s = {.fds = {-1, -1, -1}};
    int error = attach_receive(t->courier, &s.kind, &s.payload, &s.n, s.fds);
    if (!error)
        error = answer(t, &s);
    said_fini(&s);
    if (error && error != -ECONNRESET && error != -ECANCELED)
        log_error("the conversation with the courier: %s", strerror(-error));
    if (error)
        hang_up(t, "the courier is gone");
}

static void limit(int socket, int seconds)
{
    struct timeval most = {.tv_sec = seconds};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
}

/* Only what was read is answered: a socket that is closed with bytes unread takes the answer with it. */
static void turn_away(struct talk *t, int stranger)
{
    CLEANUP_CLOSE int socket = stranger;
    struct pollfd fd = {.fd = socket, .events = POLLIN};
    struct said s = {.fds = {-1, -1, -1}};
    limit(socket, 1);
    if (poll(&fd, 1, STRANGER_MS) == 1 && !attach_receive(socket, &s.kind, &s.payload, &s.n, s.fds))
        refuse_stranger(socket, -EBUSY, "%s is in a world already", t->peers->config.mountpoint);
    said_fini(&s);
}

static void accept_courier(struct talk *t)
{
    int socket = attach_accept(t->listening);
    if (socket < 0) {
        log_limited(LOG_LEVEL_WARNING, 1, "a courier was not let in: %s", strerror(-socket));
        return;
    }
    if (t->courier >= 0) {
        turn_away(t, socket);
        return;
    }
    struct ucred peer = {0};
    socklen_t n = sizeof peer;
    getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &n);
    limit(socket, FRAME_SECONDS);
    t->courier = socket;
    t->process = (uint32_t)peer.pid;
    t->state = TALK_NEW;
}

static void hear_wake(struct talk *t)
{
    uint64_t count;
    (void)!read(t->wake, &count, sizeof count);
    if (atomic_load(&t->broken))
        hang_up(t, "the courier errs");
}

/* A courier that hangs up and comes again at once is two. */
static void *talk_main(void *argument)
{
    struct talk *t = argument;
    while (!atomic_load(&t->stop)) {
        struct pollfd fd[] = {
            {.fd = t->wake, .events = POLLIN},
            {.fd = t->courier, .events = POLLIN},
            {.fd = t->listening, .events = POLLIN},
        };
        if (poll(fd, 3, -1) < 0)
            continue;
        if (fd[0].revents)
            hear_wake(t);
        else if (fd[1].revents)
            read_frame(t);
        else if (fd[2].revents)
            accept_courier(t);
    }
    if (t->courier >= 0)
        attach_send(t->courier, ATTACH_END, NULL, 0, NULL);
    hang_up(t, "the mount has ended");
    return NULL;
}

/* From outside. */

int talk_create(struct peers *peers, struct talk **talk)
{
    struct talk *t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    t->peers = peers;
    t->courier = -1;
    t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    t->listening = t->wake < 0 ? -errno : attach_listen(peers->config.state);
    if (t->listening < 0) {
        int error = t->listening;
        talk_destroy(t);
        return error;
    }
    *talk = t;
    return 0;
}

int talk_start(struct talk *t)
{
    int error = start_thread(&t->thread, talk_main, t, "peers-talk");
    t->running = !error;
    return error;
}

static void wake(struct talk *t)
{
    uint64_t one = 1;
    (void)!write(t->wake, &one, sizeof one);
}

void talk_break(struct talk *t)
{
    atomic_store(&t->broken, true);
    wake(t);
}

void talk_stop(struct talk *t)
{
    atomic_store(&t->stop, true);
    wake(t);
    if (t->running)
        pthread_join(t->thread, NULL);
    t->running = false;
}

void talk_destroy(struct talk *t)
{
    if (!t)
        return;
    int saved = errno;
    talk_stop(t);
    if (t->listening >= 0)
        close(t->listening);
    if (t->wake >= 0)
        close(t->wake);
    free(t);
    errno = saved;
}
