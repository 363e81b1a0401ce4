/* Sockets are the kernel's: a call that could block is made only when it will not.
 *
 * The table of descriptors shows which process is at a socket's other end, for SO_PEERCRED: a socket that connects gets
 * a name with its process. */
#include "tests/sim/descriptors.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static int own_socket(int fd)
{
    if (fd_own(fd) >= 0 && fd_is_known(fd))
        sim_fd_table[fd].kind = WAITS;
    return fd;
}

WRAP(int, socket, int domain, int type, int protocol)
{
    return own_socket(__real_socket(domain, type, protocol));
}

WRAP(int, socketpair, int domain, int type, int protocol, int fd[2])
{
    int error = __real_socketpair(domain, type, protocol, fd);
    for (int i = 0; !error && i < 2; i++)
        own_socket(fd[i]);
    return error;
}

/* A stream's socket may take a part; the caller goes on with the rest. */
WRAP(ssize_t, sendmsg, int fd, const struct msghdr *message, int flags)
{
    if (!fd_waits(fd))
        return __real_sendmsg(fd, message, flags);
    fd_await(fd, POLLOUT, flags | MSG_DONTWAIT, "a send to");
    ssize_t sent =
        __real_sendmsg(fd, message, flags | MSG_DONTWAIT); /* most have room: the kernel is not asked first */
    if (sent < 0 && errno == EAGAIN && fd_await(fd, POLLOUT, flags, "a send to"))
        sent = __real_sendmsg(fd, message, flags | MSG_DONTWAIT);
    return fd_changed(sent);
}

/* Names that are not files are all the machine's: other seeds run at the same time. */
static const struct sockaddr *rename_address(const struct sockaddr *address, socklen_t *n, struct sockaddr_un *ours)
{
    size_t room = sizeof ours->sun_path, used = *n - offsetof(struct sockaddr_un, sun_path);
    if (!sim_is_simulated() || !address || address->sa_family != AF_UNIX || *n <= sizeof(sa_family_t))
        return address;
    memcpy(ours, address, *n);
    if (ours->sun_path[0] || used >= room)
        return address;
    used += (size_t)snprintf(ours->sun_path + used, room - used, "-%d", (int)syscall(SYS_getpid));
    *n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (used < room ? used : room));
    return (const struct sockaddr *)ours;
}

WRAP(ssize_t, sendto, int fd, const void *bytes, size_t n, int flags, const struct sockaddr *to, socklen_t length)
{
    struct sockaddr_un ours;
    to = rename_address(to, &length, &ours);
    return fd_await(fd, POLLOUT, flags, "a send to") ? fd_changed(__real_sendto(fd, bytes, n, flags, to, length)) : -1;
}

/* Descriptors that came are the receiver's. */
WRAP(ssize_t, recvmsg, int fd, struct msghdr *message, int flags)
{
    fd_await(fd, POLLIN, flags | MSG_DONTWAIT, "a receive from");
    ssize_t got = __real_recvmsg(fd, message, fd_waits(fd) ? flags | MSG_DONTWAIT : flags);
    if (got < 0 && errno == EAGAIN && fd_await(fd, POLLIN, flags, "a receive from"))
        got = __real_recvmsg(fd, message, flags);
    fd_made_room(got);
    for (struct cmsghdr *c = got < 0 ? NULL : CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
        for (size_t at = CMSG_LEN(0); c->cmsg_type == SCM_RIGHTS && at < c->cmsg_len; at += sizeof(int)) {
            int passed;
            memcpy(&passed, (const char *)c + at, sizeof passed);
            fd_came(passed);
        }
    return got;
}

WRAP(int, recvmmsg, int fd, struct mmsghdr *messages, unsigned n, int flags, struct timespec *timeout)
{
    return fd_await(fd, POLLIN, flags, "a receive from")
               ? (int)fd_made_room(__real_recvmmsg(fd, messages, n, flags, timeout))
               : -1;
}

/* --- sockets that connect --- */

WRAP(int, bind, int fd, const struct sockaddr *address, socklen_t n)
{
    struct sockaddr_un ours;
    struct stat st;
    const struct sockaddr *as = rename_address(address, &n, &ours);
    int error = (int)fd_made_room(__real_bind(fd, as, n));
    if (!error && as == address && address->sa_family == AF_UNIX && n > sizeof(sa_family_t) && fd < FDS &&
        stat(((const struct sockaddr_un *)address)->sun_path, &st) == 0) {
        sim_fd_table[fd].device = st.st_dev;
        sim_fd_table[fd].inode = st.st_ino;
    }
    return error;
}

/* Process that has a socket bound to this file; 0: none. */
static int find_listener(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return 0;
    for (int fd = 0; fd < sim_fd_end; fd++)
        if (sim_fd_table[fd].owner && sim_fd_table[fd].inode == st.st_ino && sim_fd_table[fd].device == st.st_dev)
            return sim_fd_table[fd].owner->id;
    return 0;
}

/* "\0dealfs-sim-REAL-PROCESS-NUMBER" */
static void name_socket(int fd)
{
    static unsigned number;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "dealfs-sim-%d-%d-%u", (int)syscall(SYS_getpid),
                     sim_self->process->id, number++);
    __real_bind(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
}

WRAP(int, connect, int fd, const struct sockaddr *address, socklen_t n)
{
    struct sockaddr_un ours;
    if (!fd_waits(fd))
        return __real_connect(fd, address, n);
    sim_pause("to connect");
    const struct sockaddr *as = rename_address(address, &n, &ours);
    if (as == address && address->sa_family == AF_UNIX) {
        name_socket(fd);
        sim_fd_table[fd].peer = find_listener(((const struct sockaddr_un *)address)->sun_path);
    }
    return (int)fd_changed(__real_connect(fd, as, n));
}

WRAP(int, accept4, int fd, struct sockaddr *address, socklen_t *n, int flags)
{
    struct sockaddr_un peer = {.sun_family = AF_UNIX};
    socklen_t length = sizeof peer - 1;
    if (!fd_await(fd, POLLIN, 0, "an accept from"))
        return -1;
    int accepted = own_socket((int)fd_made_room(__real_accept4(fd, address, n, flags)));
    if (fd_waits(accepted) && getpeername(accepted, (struct sockaddr *)&peer, &length) == 0)
        sscanf(peer.sun_path + 1, "dealfs-sim-%*d-%d", &sim_fd_table[accepted].peer);
    return accepted;
}

WRAP(int, getsockopt, int fd, int level, int option, void *value, socklen_t *n)
{
    int error = __real_getsockopt(fd, level, option, value, n);
    if (!error && level == SOL_SOCKET && option == SO_PEERCRED && fd_waits(fd) && sim_fd_table[fd].peer)
        ((struct ucred *)value)->pid = sim_fd_table[fd].peer;
    return error;
}

WRAP(int, setsockopt, int fd, int level, int option, const void *value, socklen_t n)
{
    if (!fd_waits(fd) || level != SOL_SOCKET || (option != SO_RCVTIMEO && option != SO_SNDTIMEO))
        return __real_setsockopt(fd, level, option, value, n);
    struct timeval most;
    memcpy(&most, value, sizeof most);
    sim_fd_table[fd].timeout[option == SO_SNDTIMEO] =
        (uint64_t)most.tv_sec * SIM_SECOND + (uint64_t)most.tv_usec * 1000;
    return 0;
}
