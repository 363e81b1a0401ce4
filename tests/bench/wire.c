/* A long wire between two network namespaces, for benchmarks: what goes in at the near end comes out at the far end
 * later; what comes back does at once.
 *
 *   wire MICROSECONDS PID NAME PID NAME      near end, far end: a process in the namespace, and the name of a device
 *
 * Prints a line when both devices are there, and carries packets until it is killed. Netem does the same, in kernels
 * that have it. The devices take segments of up to 64 KiB, as a veth does: so it costs little at 1 Gbit/s. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    PACKET = 66 << 10,
    PACKETS = 4096, /* that are on their way; more are not taken until some have arrived */
};

static struct {
    uint64_t due;
    size_t length;
    unsigned char *bytes;
} packet[PACKETS];
static unsigned first, end;
static uint64_t delay;

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "wire: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int open_end(const char *pid, const char *name)
{
    char path[64];
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
    snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
    int space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET))
        fail(path);
    close(space);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        fail("/dev/net/tun");
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (ioctl(fd, TUNSETIFF, &request) || ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6))
        fail(name);
    return fd;
}

static void take(int near)
{
    while (end - first < PACKETS) {
        unsigned i = end % PACKETS;
        if (!packet[i].bytes && !(packet[i].bytes = malloc(PACKET)))
            return;
        ssize_t n = read(near, packet[i].bytes, PACKET);
        if (n <= 0)
            return;
        packet[i].length = (size_t)n;
        packet[i].due = now() + delay;
        end++;
    }
}

static void deliver(int far)
{
    for (; first != end && packet[first % PACKETS].due <= now(); first++)
        (void)!write(far, packet[first % PACKETS].bytes, packet[first % PACKETS].length);
}

static void bring_back(int far, int near)
{
    static unsigned char bytes[PACKET];
    for (ssize_t n; (n = read(far, bytes, sizeof bytes)) > 0;)
        (void)!write(near, bytes, (size_t)n);
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    delay = strtoull(argv[1], NULL, 10) * 1000;
    struct pollfd fd[] = {{open_end(argv[2], argv[3]), POLLIN, 0}, {open_end(argv[4], argv[5]), POLLIN, 0}};
    puts("there");
    fflush(stdout);
    for (;;) {
        uint64_t at = now(), due = first == end ? UINT64_MAX : packet[first % PACKETS].due;
        uint64_t left = due <= at ? 0 : due - at;
        const struct timespec wait = {(time_t)(left / 1000000000u), (long)(left % 1000000000u)};
        fd[0].events = end - first < PACKETS ? POLLIN : 0;
        if (ppoll(fd, 2, due == UINT64_MAX ? NULL : &wait, NULL) < 0 && errno != EINTR)
            fail("poll");
        bring_back(fd[1].fd, fd[0].fd);
        take(fd[0].fd);
        deliver(fd[1].fd);
    }
}
