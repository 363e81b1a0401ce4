/* A local socket, whose name consists of the world's uuid and our number, and a UDP socket.
 *
 * The UDP socket uses IPv6, with IPv4 in mapped form; if the kernel has no IPv6, it uses IPv4. */
#include "mpi/doorbell.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/hash.h"
#include "mpi/sockets.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum {
    BATCH = 16,
    CANDIDATES = 4,
    QUIET_MS = 20,  /* after a HEARD no bell is sent for this long: the maximum delay if it was wrong */
    LOST_MS = 3000, /* a neighbour that is missing for this long has ended */
    ROUND = 16,     /* every node is examined once in this many calls of doorbell_misses */
    AGAIN_MS = 100, /* pause between searches of the sockets for a missing neighbour */
};

enum word { RING, HEARD };

struct ring_out { /* a datagram */
    uint64_t secret;
    uint32_t node, word;
};

struct neighbour {
    bool local;
    uint8_t candidates;
    struct sockaddr_in6 address[CANDIDATES]; /* only [0] once a bell has arrived from it */
    bool connected;                          /* connected to us by a socket that wakes us */
    uint64_t look_at;                        /* when to check that */
    uint64_t quiet_until;                    /* no bell is needed until then */
    uint64_t heard_first, heard_last;        /* since when it answers bells; its last answer */
    uint64_t missed_at;                      /* since when it is missing; 0: it is there, or never was */
};

struct doorbell {
    int local, udp; /* -1: none */
    bool only_four; /* `udp` uses IPv4 */
    uint32_t me, nodes;
    uint8_t world[16];
    uint64_t secret;
    int sockets;            /* the descriptor that wakes us; -1: MPI has none */
    struct neighbour *node; /* array of `nodes` */
    struct wire_bell *all;  /* array of `nodes` */
    uint32_t connected;     /* number of connected neighbours */
    uint32_t looked;        /* the neighbour to check next */
};

static socklen_t local_name(const uint8_t world[16], uint32_t node, struct sockaddr_un *name)
{
    char text[DIGEST_TEXT];
    struct digest uuid;
    memcpy(uuid.byte, world, sizeof uuid.byte);
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n =
        snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "dealfs-bell-%s-%u", digest_format(&uuid, text), node);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Identifies the kernel and network namespace of this process. */
static void find_realm(uint8_t realm[16])
{
    struct {
        char boot[40];
        uint64_t device, inode;
    } key = {{0}, 0, 0};
    struct stat st;
    CLEANUP_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, key.boot, sizeof key.boot - 1) <= 0 || stat("/proc/self/ns/net", &st) < 0) {
        memset(realm, 0, 16);
        return;
    }
    key.device = st.st_dev;
    key.inode = st.st_ino;
    struct digest d = hash128(&key, sizeof key, 0);
    memcpy(realm, d.byte, 16);
}

static bool is_nowhere(const uint8_t bytes[16])
{
    static const uint8_t none[16];
    return memcmp(bytes, none, 16) == 0;
}

static void map_four(const struct in_addr *four, uint8_t bytes[16])
{
    memset(bytes, 0, 10);
    memset(bytes + 10, 0xff, 2);
    memcpy(bytes + 12, four, 4);
}

static uint8_t count_bits(const uint8_t *mask, size_t n)
{
    unsigned bits = 0;
    for (size_t i = 0; i < n; i++)
        bits += (unsigned)__builtin_popcount(mask[i]);
    return (uint8_t)bits;
}

/* Is this an address at which others may reach us? Not loopback, nor one that needs a scope. */
static bool take_address(const struct ifaddrs *i, uint8_t bytes[16], uint8_t *prefix)
{
    if (!i->ifa_addr || !i->ifa_netmask || !(i->ifa_flags & IFF_UP) || i->ifa_flags & IFF_LOOPBACK)
        return false;
    if (i->ifa_addr->sa_family == AF_INET) {
        map_four(&((const struct sockaddr_in *)(const void *)i->ifa_addr)->sin_addr, bytes);
        const struct sockaddr_in *mask = (const struct sockaddr_in *)(const void *)i->ifa_netmask;
        *prefix = (uint8_t)(96 + count_bits((const uint8_t *)&mask->sin_addr, 4));
        return true;
    }
    if (i->ifa_addr->sa_family != AF_INET6)
        return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr;
    const struct sockaddr_in6 *mask = (const struct sockaddr_in6 *)(const void *)i->ifa_netmask;
    memcpy(bytes, six, 16);
    *prefix = count_bits((const uint8_t *)&mask->sin6_addr, 16);
    return !IN6_IS_ADDR_LINKLOCAL(six) && !IN6_IS_ADDR_LOOPBACK(six);
}

static void find_addresses(struct wire_bell *b)
{
    struct ifaddrs *list;
    if (getifaddrs(&list) < 0)
        return;
    for (struct ifaddrs *i = list; i && b->addresses < BELL_ADDRESSES; i = i->ifa_next)
        if (take_address(i, b->address[b->addresses].bytes, &b->address[b->addresses].prefix))
            b->addresses++;
    freeifaddrs(list);
    if (b->addresses < BELL_ADDRESSES)
        memset(&b->address[b->addresses], 0, sizeof b->address[0]);
}

static int open_local(struct doorbell *d)
{
    struct sockaddr_un name;
    socklen_t n = local_name(d->world, d->me, &name);
    d->local = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return d->local < 0 || bind(d->local, (struct sockaddr *)&name, n) < 0 ? -errno : 0;
}

static int open_udp(struct doorbell *d, uint16_t *port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    int off = 0;
    d->udp = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (d->udp >= 0 && setsockopt(d->udp, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0 &&
        bind(d->udp, (struct sockaddr *)&six, sizeof six) == 0) {
        socklen_t n = sizeof six;
        int error = getsockname(d->udp, (struct sockaddr *)&six, &n) < 0 ? -errno : 0;
        *port = ntohs(six.sin6_port);
        return error;
    }
    if (d->udp >= 0)
        close(d->udp);
    d->only_four = true;
    d->udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    socklen_t n = sizeof four;
    if (d->udp < 0 || bind(d->udp, (struct sockaddr *)&four, sizeof four) < 0 ||
        getsockname(d->udp, (struct sockaddr *)&four, &n) < 0)
        return -errno;
    *port = ntohs(four.sin_port);
    return 0;
}

int doorbell_create(uint32_t me, const uint8_t world[16], uint64_t secret, struct wire_bell *address,
                    struct doorbell **doorbell)
{
    memset(address, 0, sizeof *address);
    address->magic = WIRE_MAGIC;
    struct doorbell *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    d->local = d->udp = d->sockets = -1;
    d->me = me;
    memcpy(d->world, world, sizeof d->world);
    d->secret = secret;
    int error = open_local(d);
    if (!error)
        error = open_udp(d, &address->port);
    if (error) {
        doorbell_destroy(d);
        return error;
    }
    find_realm(address->realm);
    find_addresses(address);
    *doorbell = d;
    return 0;
}

void doorbell_destroy(struct doorbell *d)
{
    if (!d)
        return;
    KEEP_ERRNO;
    if (d->local >= 0)
        close(d->local);
    if (d->udp >= 0)
        close(d->udp);
    free(d->node);
    free(d->all);
    free(d);
}

static bool in_subnet(const uint8_t a[16], const uint8_t b[16], uint8_t prefix)
{
    unsigned whole = prefix / 8, rest = prefix % 8;
    return memcmp(a, b, whole) == 0 && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

static bool is_ours(const struct wire_bell *mine, const uint8_t bytes[16])
{
    for (int i = 0; i < mine->addresses; i++)
        if (memcmp(mine->address[i].bytes, bytes, 16) == 0)
            return true;
    return false;
}

static bool is_near(const struct wire_bell *mine, const uint8_t bytes[16])
{
    for (int i = 0; i < mine->addresses; i++)
        if (in_subnet(mine->address[i].bytes, bytes, mine->address[i].prefix))
            return true;
    return false;
}

/* If we have the same address, it belongs to a bridge that many machines have. */
static void choose_addresses(const struct doorbell *d, const struct wire_bell *mine, const struct wire_bell *its,
                             struct neighbour *n)
{
    n->local = !is_nowhere(mine->realm) && memcmp(mine->realm, its->realm, sizeof mine->realm) == 0;
    for (int near = 1; near >= 0; near--)
        for (int i = 0; i < its->addresses && n->candidates < CANDIDATES; i++) {
            const uint8_t *bytes = its->address[i].bytes;
            bool mapped = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)(const void *)bytes);
            if (is_ours(mine, bytes) || is_near(mine, bytes) != near || (d->only_four && !mapped))
                continue;
            struct sockaddr_in6 *to = &n->address[n->candidates++];
            *to = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(its->port)};
            memcpy(&to->sin6_addr, bytes, 16);
        }
}

int doorbell_connect(struct doorbell *d, const struct wire_bell *all, uint32_t nodes)
{
    d->node = calloc(nodes, sizeof *d->node);
    d->all = calloc(nodes, sizeof *d->all);
    if (!d->node || !d->all)
        return -ENOMEM;
    memcpy(d->all, all, nodes * sizeof *all);
    d->nodes = nodes;
    for (uint32_t i = 0; i < nodes; i++)
        if (i != d->me)
            choose_addresses(d, &all[d->me], &all[i], &d->node[i]);
    return 0;
}

void doorbell_sleeps_on(struct doorbell *d, int sockets)
{
    d->sockets = sockets;
}

bool doorbell_is_idle(const struct doorbell *d)
{
    return d->nodes > 0 && d->connected == d->nodes - 1;
}

void doorbell_fds(const struct doorbell *d, int fds[2])
{
    fds[0] = d->local;
    fds[1] = d->udp;
}

/* Errors do not matter: if the peer's socket is full, it will wake up; if the peer is gone, it cannot. */
static void send_udp(const struct doorbell *d, const struct sockaddr_in6 *to, const struct ring_out *what)
{
    if (!d->only_four) {
        sendto(d->udp, what, sizeof *what, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)to, sizeof *to);
        return;
    }
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = to->sin6_port};
    memcpy(&four.sin_addr, to->sin6_addr.s6_addr + 12, 4);
    sendto(d->udp, what, sizeof *what, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&four, sizeof four);
}

static int send_local(const struct doorbell *d, uint32_t node, const struct ring_out *what)
{
    struct sockaddr_un name;
    socklen_t n = local_name(d->world, node, &name);
    ssize_t sent = sendto(d->local, what, sizeof *what, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&name, n);
    return sent < 0 ? -errno : 0;
}

void doorbell_ring(struct doorbell *d, uint32_t node)
{
    struct ring_out what = {.secret = d->secret, .node = d->me};
    if (node >= d->nodes)
        return;
    const struct neighbour *n = &d->node[node];
    if (n->quiet_until && clock_now() < n->quiet_until)
        return;
    if (n->local) {
        send_local(d, node, &what);
        return;
    }
    for (int i = 0; i < n->candidates; i++)
        send_udp(d, &n->address[i], &what);
}

static struct sockaddr_in6 widen_address(const struct doorbell *d, const struct sockaddr_in6 *from)
{
    if (!d->only_four)
        return *from;
    const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)from;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = four->sin_port};
    map_four(&four->sin_addr, six.sin6_addr.s6_addr);
    return six;
}

static bool look_for(struct doorbell *d, uint32_t node)
{
    struct neighbour *n = &d->node[node];
    const struct wire_bell *its = &d->all[node];
    bool found = false;
    for (int i = 0; i < its->addresses && !found && d->sockets >= 0; i++)
        found = sockets_reach(d->sockets, its->address[i].bytes);
    d->connected += found;
    d->connected -= n->connected;
    return n->connected = found;
}

static bool is_connected(struct doorbell *d, uint32_t node, uint64_t now)
{
    struct neighbour *n = &d->node[node];
    if (n->connected || d->sockets < 0 || now < n->look_at)
        return n->connected;
    n->look_at = now + AGAIN_MS * MILLISECOND;
    return look_for(d, node);
}

static bool is_missed(struct doorbell *d, uint32_t node, uint64_t now)
{
    struct neighbour *n = &d->node[node];
    struct ring_out what = {.secret = d->secret, .node = d->me};
    bool was = n->local || n->connected;
    bool is = n->local ? send_local(d, node, &what) != -ECONNREFUSED : look_for(d, node);
    if (is)
        n->missed_at = 0;
    else if (was && !n->missed_at)
        n->missed_at = now;
    return n->missed_at && now - n->missed_at >= LOST_MS * MILLISECOND;
}

bool doorbell_misses(struct doorbell *d, uint32_t *node)
{
    uint64_t now = clock_now();
    for (uint32_t i = 0; i < 1 + d->nodes / ROUND; i++) {
        *node = d->looked;
        d->looked = (d->looked + 1) % d->nodes;
        if (*node != d->me && is_missed(d, *node, now))
            return true;
    }
    return false;
}

bool doorbell_reaches(const struct doorbell *d, uint32_t node)
{
    return !d->node[node].local && d->node[node].connected;
}

uint64_t doorbell_answered(const struct doorbell *d, uint32_t node)
{
    const struct neighbour *n = &d->node[node];
    return clock_now() - n->heard_last < LOST_MS * MILLISECOND ? n->heard_last - n->heard_first : 0;
}

static bool take_word(struct doorbell *d, const struct ring_out *what, const struct sockaddr_in6 *from)
{
    struct neighbour *it = &d->node[what->node];
    uint64_t now = clock_now();
    if (what->word == HEARD) {
        it->quiet_until = now + QUIET_MS * MILLISECOND;
        if (now - it->heard_last >= LOST_MS * MILLISECOND)
            it->heard_first = now;
        it->heard_last = now;
        return false;
    }
    if (is_connected(d, what->node, now)) {
        struct ring_out heard = {.secret = d->secret, .node = d->me, .word = HEARD};
        send_udp(d, from, &heard);
    }
    return true;
}

static bool check_in(struct doorbell *d, const struct ring_out *what, size_t n, const struct sockaddr_in6 *from)
{
    if (n != sizeof *what || what->secret != d->secret || what->node >= d->nodes || what->node == d->me)
        return false;
    struct neighbour *it = &d->node[what->node];
    if (from && !it->local) {
        it->candidates = 1;
        it->address[0] = widen_address(d, from);
        return take_word(d, what, &it->address[0]);
    }
    return true;
}

static bool drain_socket(struct doorbell *d, int fd, bool udp)
{
    struct ring_out what[BATCH];
    struct sockaddr_in6 from[BATCH];
    struct iovec part[BATCH];
    struct mmsghdr message[BATCH];
    bool rung = false;
    int n;
    do {
        memset(message, 0, sizeof message);
        for (int i = 0; i < BATCH; i++) {
            part[i] = (struct iovec){&what[i], sizeof what[i]};
            message[i].msg_hdr.msg_iov = &part[i];
            message[i].msg_hdr.msg_iovlen = 1;
            message[i].msg_hdr.msg_name = udp ? &from[i] : NULL;
            message[i].msg_hdr.msg_namelen = udp ? sizeof from[i] : 0;
        }
        n = recvmmsg(fd, message, BATCH, MSG_DONTWAIT, NULL);
        for (int i = 0; i < n; i++)
            rung |= check_in(d, &what[i], message[i].msg_len, udp ? &from[i] : NULL);
    } while (n == BATCH);
    return rung;
}

bool doorbell_answer(struct doorbell *d, int fd)
{
    return drain_socket(d, fd ? d->udp : d->local, fd);
}
