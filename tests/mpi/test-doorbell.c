/* Bells: a local one and one by UDP are heard, strangers are not, and who needs none is spared. */
#include "mpi/doorbell.h"

#include "tests/fs/base/moved-clock.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SECRET = 4711 };

static const uint8_t world[16] = {1, 2, 3}, other_world[16] = {9};

static bool wait_for_bell(struct doorbell *d, int ms)
{
    int fd[2];
    doorbell_fds(d, fd);
    struct pollfd ready[] = {{fd[0], POLLIN, 0}, {fd[1], POLLIN, 0}};
    return poll(ready, 2, ms) > 0;
}

static bool answer_both(struct doorbell *d)
{
    bool local = doorbell_answer(d, 0), udp = doorbell_answer(d, 1);
    return local || udp;
}

static bool heard(struct doorbell *d)
{
    return wait_for_bell(d, test_patience()) && answer_both(d);
}

struct pair {
    struct doorbell *d[2];
    struct wire_bell all[2];
};

static bool make_pair(struct pair *p)
{
    for (uint32_t i = 0; i < 2; i++)
        if (doorbell_create(i, world, SECRET, &p->all[i], &p->d[i]))
            return false;
    return true;
}

static void connect_pair(struct pair *p)
{
    for (int i = 0; i < 2; i++)
        ok(doorbell_connect(p->d[i], p->all, 2) == 0, "node %d knows the addresses", i);
}

static void destroy_pair(struct pair *p)
{
    doorbell_destroy(p->d[0]);
    doorbell_destroy(p->d[1]);
}

static void test_local(void)
{
    struct pair p;
    if (!ok(make_pair(&p), "two bells"))
        return;
    ok(wire_bell_check(&p.all[0]) == 0 && memcmp(p.all[0].realm, p.all[1].realm, 16) == 0, "they share a kernel");
    connect_pair(&p);
    ok(!doorbell_is_idle(p.d[0]), "it is woken by a bell");
    ok(!answer_both(p.d[1]), "nobody has rung");
    doorbell_ring(p.d[0], 1);
    ok(heard(p.d[1]), "one rings, the other hears it");
    ok(!wait_for_bell(p.d[1], 0), "and has then heard all");
    for (int i = 0; i < 1000; i++)
        doorbell_ring(p.d[1], 0);
    ok(heard(p.d[0]) && !wait_for_bell(p.d[0], 0), "much ringing harms nobody");
    doorbell_ring(p.d[0], 7);
    doorbell_destroy(p.d[1]);
    p.d[1] = NULL;
    doorbell_ring(p.d[0], 1);
    pass("nor does ringing somebody who is not there");
    destroy_pair(&p);
}

/* As if they were on two machines, each with an address that the other does not have. */
static bool make_distant_pair(struct pair *p)
{
    if (!ok(make_pair(p), "two bells"))
        return false;
    for (int i = 0; i < 2; i++) {
        p->all[i].realm[0] ^= (uint8_t)(i + 1);
        p->all[i].addresses = 1;
        memset(&p->all[i].address[0], 0, sizeof p->all[i].address[0]);
        memset(p->all[i].address[0].bytes + 10, 0xff, 2);
        memcpy(p->all[i].address[0].bytes + 12, &(uint32_t){htonl(INADDR_LOOPBACK + (uint32_t)i)}, 4);
        p->all[i].address[0].prefix = 104;
    }
    connect_pair(p);
    return true;
}

static void test_udp(void)
{
    struct pair p;
    if (!make_distant_pair(&p))
        return;
    doorbell_ring(p.d[0], 1);
    ok(heard(p.d[1]), "one rings by UDP, the other hears it");
    doorbell_ring(p.d[1], 0);
    ok(heard(p.d[0]), "and rings back where it came from");
    destroy_pair(&p);
}

/* Of the TCP transport of MPI: a connection to the first of the pair. */
static int connect_sockets(int fd[2])
{
    struct sockaddr_in first = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event e = {.events = EPOLLIN};
    socklen_t n = sizeof first;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < 2; i++)
        fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd[0], (struct sockaddr *)&first, n) < 0 || listen(fd[0], 1) < 0 ||
        getsockname(fd[0], (struct sockaddr *)&first, &n) < 0 || connect(fd[1], (struct sockaddr *)&first, n) < 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd[1], &e) < 0)
        bail_out("a connection: %s", strerror(errno));
    return epoll;
}

/* Is the second rung, when the first means to? */
static bool rings(struct pair *p, int ms)
{
    doorbell_ring(p->d[0], 1);
    return wait_for_bell(p->d[1], ms);
}

/* The second says that it need not be; that does not ring. */
static bool declines(struct pair *p)
{
    return answer_both(p->d[1]) && wait_for_bell(p->d[0], test_patience()) && !answer_both(p->d[0]);
}

static void test_quiet(void)
{
    struct pair p;
    clock_stand();
    int fd[2], epoll = connect_sockets(fd);
    if (!make_distant_pair(&p))
        return;
    ok(rings(&p, test_patience()) && answer_both(p.d[1]) && !wait_for_bell(p.d[0], 0),
       "who sleeps on no sockets has no answer");
    doorbell_sleeps_on(p.d[1], epoll);
    ok(!doorbell_is_idle(p.d[1]), "nor does it know yet whom they reach");
    ok(rings(&p, test_patience()) && declines(&p), "who is reached by a socket says so, which is no bell");
    ok(doorbell_is_idle(p.d[1]) && !doorbell_is_idle(p.d[0]), "and needs no bell of anybody");
    ok(doorbell_reaches(p.d[1], 0) && !doorbell_reaches(p.d[0], 1), "it reaches the other, which has no socket to it");
    ok(doorbell_answered(p.d[0], 1) == 0 && doorbell_answered(p.d[1], 0) == 0, "one answer takes no time");
    ok(!rings(&p, 0), "it is not rung then");
    clock_add(SECOND / 10);
    ok(rings(&p, test_patience()) && declines(&p), "but after a while again");
    ok(doorbell_answered(p.d[0], 1) > 0, "by then it has answered for a time");
    clock_run();
    destroy_pair(&p);
    close(fd[0]);
    close(fd[1]);
    close(epoll);
}

static void test_strangers(void)
{
    struct pair p, q;
    if (!ok(make_pair(&p) && doorbell_create(1, other_world, SECRET + 1, &q.all[1], &q.d[1]) == 0,
            "a bell of another world"))
        return;
    q.d[0] = NULL;
    q.all[0] = p.all[0];
    for (int i = 0; i < 2; i++) {
        p.all[i].realm[0] ^= (uint8_t)(i + 1);
        memset(p.all[i].address[0].bytes + 10, 0xff, 2);
        memcpy(p.all[i].address[0].bytes + 12, &(uint32_t){htonl(INADDR_LOOPBACK + (uint32_t)i)}, 4);
        p.all[i].addresses = 1;
    }
    q.all[0] = p.all[0];
    q.all[1].realm[0] ^= 8;
    q.all[1].addresses = 0;
    ok(doorbell_connect(p.d[0], p.all, 2) == 0 && doorbell_connect(q.d[1], q.all, 2) == 0, "they are connected");
    doorbell_ring(q.d[1], 0);
    ok(wait_for_bell(p.d[0], test_patience()) && !answer_both(p.d[0]), "a bell of another world is not heard");
    doorbell_ring(p.d[1], 0);
    ok(doorbell_create(0, world, SECRET, &q.all[0], &q.d[0]) == -EADDRINUSE, "no two in one world have one number");
    destroy_pair(&p);
    doorbell_destroy(q.d[1]);
}

/* Of the same user, on the same machine, it has read the world's uuid in /proc/net/unix. */
static void test_spy(void)
{
    struct wire_bell all[3];
    struct doorbell *d[3] = {NULL};
    bool made = true;
    for (uint32_t i = 0; i < 3; i++)
        made &= doorbell_create(i, world, SECRET + (i == 2), &all[i], &d[i]) == 0;
    for (uint32_t i = 0; i < 3 && made; i++)
        made = doorbell_connect(d[i], all, 3) == 0;
    if (!ok(made, "two bells, and one that knows no more than the name of their world"))
        return;
    doorbell_ring(d[2], 0);
    ok(wait_for_bell(d[0], test_patience()) && !answer_both(d[0]), "it is not heard");
    doorbell_ring(d[1], 0);
    ok(heard(d[0]), "they hear each other");
    for (uint32_t i = 0; i < 3; i++)
        doorbell_destroy(d[i]);
}

int main(void)
{
    doorbell_destroy(NULL);
    test_local();
    test_udp();
    test_quiet();
    test_strangers();
    test_spy();
    return done_testing();
}
