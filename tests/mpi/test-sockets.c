/* The epoll descriptor with a listening socket is found among others, and what it is connected to. */
#include "mpi/sockets.h"

#include "tests/lib/tap.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint8_t here[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1}, elsewhere[16] = {[10] = 0xff, 0xff, 127, 0, 0, 2},
                     here_six[16] = {[15] = 1};

static void watch(int epoll, int fd)
{
    struct epoll_event e = {.events = EPOLLIN};
    if (epoll < 0 || fd < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0)
        bail_out("epoll: %s", strerror(errno));
}

static int tcp(int family)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        bail_out("socket: %s", strerror(errno));
    return fd;
}

static int listen_at(struct sockaddr *address, socklen_t n)
{
    int fd = tcp(address->sa_family);
    if (bind(fd, address, n) < 0 || listen(fd, 1) < 0 || getsockname(fd, address, &n) < 0)
        bail_out("listen: %s", strerror(errno));
    return fd;
}

static void test_find(int epoll, int listener)
{
    int other = epoll_create1(EPOLL_CLOEXEC), event = eventfd(0, EFD_CLOEXEC), unbound = tcp(AF_INET);
    watch(other, event);
    watch(other, unbound);
    is_int(sockets_find(), -ENOENT, "there is none that watches a listening socket");
    watch(epoll, listener);
    is_int(sockets_find(), epoll, "one that does is found");
    close(other);
    close(event);
    close(unbound);
}

static void test_reach(int epoll, const struct sockaddr_in *to)
{
    int fd = tcp(AF_INET);
    watch(epoll, fd);
    ok(!sockets_reach(epoll, here), "who is not connected reaches nobody");
    if (connect(fd, (const struct sockaddr *)to, sizeof *to) < 0)
        bail_out("connect: %s", strerror(errno));
    ok(sockets_reach(epoll, here), "a connection reaches its other end");
    ok(!sockets_reach(epoll, elsewhere), "and no other address");
    ok(!sockets_reach(epoll, here_six), "nor one of IPv6 that ends alike");
    epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
    ok(!sockets_reach(epoll, here), "a connection that is not watched does not count");
    close(fd);
}

static void test_six(int epoll)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool six = probe >= 0 && bind(probe, (struct sockaddr *)&address, sizeof address) == 0;
    if (probe >= 0)
        close(probe);
    if (!six) {
        skip(1, "no IPv6 here");
        return;
    }
    int listener = listen_at((struct sockaddr *)&address, sizeof address), fd = tcp(AF_INET6);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        bail_out("connect: %s", strerror(errno));
    watch(epoll, fd);
    ok(sockets_reach(epoll, here_six) && !sockets_reach(epoll, here), "one over IPv6 reaches its address");
    close(fd);
    close(listener);
}

int main(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int listener = listen_at((struct sockaddr *)&address, sizeof address);
    test_find(epoll, listener);
    test_reach(epoll, &address);
    test_six(epoll);
    close(epoll);
    is_int(sockets_find(), -ENOENT, "one that is closed is not found");
    ok(!sockets_reach(epoll, here), "nor what it watched");
    close(listener);
    return done_testing();
}
