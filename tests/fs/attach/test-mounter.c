/* fs/attach/mounter.h: the descriptors on which a mounter answers. */
#include "fs/attach/mounter.h"
#include "fs/base/cleanup.h"
#include "tests/lib/tap.h"

#include <string.h>
#include <sys/socket.h>

static void test_pair(int domain, int type, bool may, const char *what)
{
    int ends[2];
    if (socketpair(domain, type | SOCK_CLOEXEC, 0, ends) < 0)
        bail_out("make a pair of sockets: %s", strerror(errno));
    is_int(mounter_may_answer(ends[0], geteuid()), may, "%s", what);
    is_int(mounter_may_answer(ends[0], geteuid() + 1), false, "and not for another user");
    close(ends[0]);
    close(ends[1]);
}

static void test_others(void)
{
    int ends[2];
    CLEANUP_CLOSE int network = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CLEANUP_CLOSE int lone = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (pipe(ends) < 0)
        bail_out("make a pipe: %s", strerror(errno));
    ok(!mounter_may_answer(ends[1], geteuid()), "not on a pipe");
    ok(!mounter_may_answer(network, geteuid()), "not on a socket of the network");
    ok(!mounter_may_answer(lone, geteuid()), "not on a socket without another end");
    ok(!mounter_may_answer(lone, (uid_t)-1), "also if the user who asks is unknown");
    ok(!mounter_may_answer(-1, geteuid()), "not without a descriptor");
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    test_pair(AF_UNIX, SOCK_SEQPACKET, true, "it answers on a SEQPACKET socket of the user who asks");
    test_pair(AF_UNIX, SOCK_STREAM, false, "not on a STREAM socket");
    test_pair(AF_UNIX, SOCK_DGRAM, false, "not on a DGRAM socket");
    test_others();
    return done_testing();
}
