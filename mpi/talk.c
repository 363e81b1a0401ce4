/* The conversation with the server while a world forms: each function says something and waits for the answer. */
#include "mpi/link-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { ANSWER_S = 120, RETRY_NS = 20000000 };

static int say(struct str *why, int error, const char *what)
{
    str_addf(why, "%s: %s", what, strerror(-error));
    return error;
}

int link_refused(const void *payload, size_t n, struct str *why)
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
        error = link_refused(*payload, *n, why);
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

/* What says the version stands at the same place in every one. */
static bool is_other_release(const void *payload, size_t n, char release[VERSION_TEXT])
{
    size_t at = offsetof(struct attach_welcome, release);
    if (n < at + VERSION_TEXT)
        return false;
    memcpy(release, (const char *)payload + at, VERSION_TEXT);
    return is_text(release, VERSION_TEXT) && strcmp(release, DEALFS_VERSION) != 0;
}

int link_check_welcome(const void *payload, size_t n, struct attach_welcome *to)
{
    struct attach_welcome w;
    if (is_other_release(payload, n, w.release))
        return -ESTALE;
    if (n != sizeof w)
        return -EPROTO;
    memcpy(&w, payload, sizeof w);
    if (w.version != ATTACH_VERSION || w.waiting > 1 || !is_text(w.release, sizeof w.release) ||
        !is_text(w.node.id, sizeof w.node.id) || !is_text(w.node.host, sizeof w.node.host) ||
        !is_text(w.mountpoint, sizeof w.mountpoint))
        return -EPROTO;
    *to = w;
    return 0;
}

struct attach_hello link_hello(const struct link *l)
{
    struct attach_hello hello = {.version = ATTACH_VERSION, .release = DEALFS_VERSION};
    memcpy(hello.world, l->world, sizeof hello.world);
    return hello;
}

static int greet(struct link *l, struct str *why)
{
    struct attach_hello hello = link_hello(l);
    CLEANUP_FREE void *payload = NULL;
    size_t n;
    int error =
        converse(l, ATTACH_HELLO, &(struct iovec){&hello, sizeof hello}, 1, NULL, ATTACH_WELCOME, &payload, &n, why);
    if (error)
        return error;
    error = link_check_welcome(payload, n, &l->welcome);
    char release[VERSION_TEXT];
    if (error == -ESTALE && is_other_release(payload, n, release))
        str_addf(why, "its mount was made by dealfs %s, its courier is of dealfs %s: mount it again", release,
                 DEALFS_VERSION);
    else if (error)
        say(why, error, "the mount's server says nonsense");
    return error;
}

void link_limit(int socket, int seconds)
{
    struct timeval most = {.tv_sec = seconds};
    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
}

int link_connect(struct link *l)
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

bool link_may_come(int error)
{
    return error == -ENOENT || error == -ECONNREFUSED || error == -EAGAIN;
}

int link_open(struct link *l, uint64_t patience, struct str *why)
{
    uint64_t began = clock_now();
    int error = link_connect(l);
    while (link_may_come(error) && clock_now() - began < patience) {
        nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
        error = link_connect(l);
    }
    if (link_may_come(error)) {
        str_addf(why, "no live mount answers at %s/courier", l->path);
        return error;
    }
    if (error) {
        str_addf(why, "connect to the mount at %s/courier: %s", l->path, strerror(-error));
        return error;
    }
    link_limit(l->socket, ANSWER_S);
    error = greet(l, why);
    if (error)
        link_hang_up(l);
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

int link_holdings(struct link *l, struct holding *holding, uint64_t **words, struct str *why)
{
    CLEANUP_FREE void *payload = NULL;
    size_t n, bytes = (l->welcome.extents + 63) / 64 * sizeof **words;
    int error = converse(l, ATTACH_HOLDINGS, NULL, 0, NULL, ATTACH_HOLDINGS, &payload, &n, why);
    if (error)
        return error;
    if (n != sizeof *holding + bytes)
        return say(why, -EPROTO, "the mount's server says nonsense about what it holds");
    uint64_t *bits = malloc(bytes + 1);
    if (!bits)
        return -ENOMEM;
    memcpy(holding, payload, sizeof *holding);
    memcpy(bits, (struct holding *)payload + 1, bytes);
    *words = bits;
    return 0;
}

static int hear_digest(const void *payload, size_t n, struct digest *to, struct str *why)
{
    if (n != sizeof *to)
        return say(why, -EPROTO, "the mount's server says nonsense about the directory");
    memcpy(to, payload, n);
    return 0;
}

int link_world(struct link *l, uint32_t me, uint32_t nodes, uint32_t groups, const struct attach_member *member,
               const uint16_t *holder, struct str *why)
{
    struct attach_world head = {.nodes = nodes, .groups = groups, .me = me, .held = holder != NULL};
    struct iovec part[] = {
        {&head, sizeof head},
        {(void *)member, nodes * sizeof *member},
        {(void *)holder, groups * l->welcome.extents * sizeof *holder},
    };
    CLEANUP_FREE void *payload = NULL;
    int fds[ATTACH_FDS];
    size_t n;
    int error = hold_create(nodes, &l->hold);
    if (error)
        return say(why, error, "make the ring");
    memcpy(head.world, l->world, sizeof head.world);
    hold_fds(l->hold, fds);
    error = converse(l, ATTACH_WORLD, part, holder ? 3 : 2, fds, ATTACH_DIRECTORY, &payload, &n, why);
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
    link_limit(l->socket, 1); /* only what can be read is read from now on */
    return 0;
}
