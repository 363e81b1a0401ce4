/* Descriptors are the kernel's. A call that could block is made only when poll says that it does not; else the thread
 * waits in the scheduler until some thread has changed a descriptor. Calls on regular files are not changed.
 *
 * A table knows which process made a descriptor, to close it when that one is killed, and who is at a socket's other
 * end, for SO_PEERCRED: a socket that connects gets a name that has the process in it. */
#include "tests/sim/sched-inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { FDS = 65536, SYNC_MOST_NS = 5000000 };

struct descriptor {
    struct sim_process *owner; /* NULL: not made by a simulated thread */
    uint64_t timeout[2];       /* for receiving and sending; 0: none */
    dev_t device;              /* of the file that a socket is bound to */
    ino_t inode;
    int peer; /* process at the other end; 0: not known */
    enum { UNKNOWN, FILE_LIKE, WAITS } kind;
    unsigned flags_known; /* `waiting` is right while this is flags_set */
    bool waiting;         /* no O_NONBLOCK */
};

static struct descriptor table[FDS];
static int table_end;          /* none is in use from here on */
static unsigned flags_set = 1; /* how often flags of descriptors were set, from 1: the table's are then unknown */
static unsigned senders;       /* threads that wait for room */

/* Made by the calling thread; errors pass through. */
static int own(int fd)
{
    if (fd < 0 || fd >= FDS || !sim_is_simulated())
        return fd;
    if (fd >= table_end)
        table_end = fd + 1;
    table[fd] = (struct descriptor){.owner = sim_self->process};
    return fd;
}

static void disown(int fd)
{
    if (fd >= 0 && fd < FDS)
        table[fd] = (struct descriptor){.owner = NULL};
}

/* Whether calls on it may have to wait. */
static bool waits(int fd)
{
    struct stat st;
    if (!sim_is_simulated() || fd < 0 || fd >= FDS)
        return false;
    if (table[fd].kind == UNKNOWN && fstat(fd, &st) == 0) {
        mode_t kind = st.st_mode & S_IFMT; /* 0: an eventfd and its like */
        table[fd].kind = kind == 0 || S_ISSOCK(kind) || S_ISFIFO(kind) ? WAITS : FILE_LIKE;
    }
    return table[fd].kind == WAITS;
}

void sim_files_close(struct sim_process *dead)
{
    for (int fd = 0; fd < table_end; fd++)
        if (table[fd].owner == dead) {
            disown(fd);
            syscall(SYS_close, fd);
        }
    sim.changed = true;
}

/* What makes and ends descriptors. */

WRAP(int, open, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    sim_pause("to open a file");
    return own(__real_open(path, flags, mode));
}

WRAP(int, openat, int directory, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    sim_pause("to open a file");
    return own(__real_openat(directory, path, flags, mode));
}

WRAP(int, eventfd, unsigned value, int flags)
{
    return own(__real_eventfd(value, flags));
}

WRAP(int, epoll_create1, int flags)
{
    return own(__real_epoll_create1(flags));
}

WRAP(int, memfd_create, const char *name, unsigned flags)
{
    return own(__real_memfd_create(name, flags));
}

WRAP(int, socket, int domain, int type, int protocol)
{
    return own(__real_socket(domain, type, protocol));
}

WRAP(int, socketpair, int domain, int type, int protocol, int fd[2])
{
    int error = __real_socketpair(domain, type, protocol, fd);
    for (int i = 0; !error && i < 2; i++)
        own(fd[i]);
    return error;
}

WRAP(int, pipe2, int fd[2], int flags)
{
    int error = __real_pipe2(fd, flags);
    for (int i = 0; !error && i < 2; i++)
        own(fd[i]);
    return error;
}

WRAP(int, fcntl, int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *argument = va_arg(args, void *);
    va_end(args);
    int result = __real_fcntl(fd, command, argument);
    flags_set += command == F_SETFL;
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? own(result) : result;
}

WRAP(int, close, int fd)
{
    sim_pause("to close");
    disown(fd);
    int error = __real_close(fd);
    sim.changed = true;
    return error;
}

/* It belongs to the stream now, which is closed in the C library. */
WRAP(DIR *, fdopendir, int fd)
{
    DIR *folder = __real_fdopendir(fd);
    if (folder)
        disown(fd);
    return folder;
}

/* Regular files: other threads may run meanwhile. Nothing is written to a real disk, which takes long. */

static int sync_file(int fd)
{
    sim_sleep_until(sim.now + sim_random(SYNC_MOST_NS), "a sync");
    if (power_synced)
        power_synced(fd);
    return 0;
}

static int named(int error, int directory, const char *path)
{
    if (!error && power_named && sim_is_simulated())
        power_named(directory, path);
    return error;
}

WRAP(int, fsync, int fd)
{
    return sim_is_simulated() ? sync_file(fd) : __real_fsync(fd);
}

WRAP(int, fdatasync, int fd)
{
    return sim_is_simulated() ? sync_file(fd) : __real_fdatasync(fd);
}

WRAP(ssize_t, preadv, int fd, const struct iovec *part, int parts, off_t at)
{
    sim_pause("to read a file");
    return __real_preadv(fd, part, parts, at);
}

WRAP(ssize_t, pwrite, int fd, const void *bytes, size_t n, off_t at)
{
    sim_pause("to write a file");
    return __real_pwrite(fd, bytes, n, at);
}

WRAP(int, renameat, int from, const char *old, int to, const char *new)
{
    sim_pause("to rename a file");
    return named(__real_renameat(from, old, to, new), to, new);
}

WRAP(int, rename, const char *old, const char *new)
{
    sim_pause("to rename a file");
    return named(__real_rename(old, new), AT_FDCWD, new);
}

/* Waiting. */

static uint64_t deadline_of(uint64_t nanoseconds)
{
    return sim.now + nanoseconds;
}

static uint64_t deadline_ms(int timeout)
{
    return timeout < 0 ? SIM_NEVER : deadline_of((uint64_t)timeout * (SIM_SECOND / 1000));
}

static bool is_waiting(int fd)
{
    struct descriptor *d = &table[fd];
    if (d->flags_known != flags_set)
        d->waiting = !(__real_fcntl(fd, F_GETFL, NULL) & O_NONBLOCK);
    d->flags_known = flags_set;
    return d->waiting;
}

/* True: the call may be made, and answers at once, if only by EAGAIN. */
static bool await(int fd, short events, int flags, const char *what)
{
    if (!waits(fd))
        return true;
    sim_pause(what);
    if (flags & MSG_DONTWAIT || !is_waiting(fd))
        return true;
    struct pollfd wanted = {.fd = fd, .events = events};
    uint64_t most = table[fd].timeout[events == POLLOUT];
    uint64_t deadline = most ? deadline_of(most) : SIM_NEVER;
    bool late = false;
    senders += events == POLLOUT;
    while (!late && __real_poll(&wanted, 1, 0) == 0)
        late = !sim_wait_fds(&wanted, 1, deadline, what);
    senders -= events == POLLOUT;
    errno = late ? EAGAIN : errno;
    return !late;
}

WRAP(int, poll, struct pollfd *fds, nfds_t count, int timeout)
{
    if (!sim_is_simulated())
        return __real_poll(fds, count, timeout);
    uint64_t deadline = deadline_ms(timeout);
    sim_pause("a poll");
    for (;;) {
        int n = __real_poll(fds, count, 0);
        if (n || timeout == 0 || !sim_wait_fds(fds, count, deadline, "a poll of"))
            return n;
    }
}

WRAP(int, epoll_wait, int epoll, struct epoll_event *events, int most, int timeout)
{
    if (!sim_is_simulated())
        return __real_epoll_wait(epoll, events, most, timeout);
    struct pollfd self = {.fd = epoll, .events = POLLIN};
    uint64_t deadline = deadline_ms(timeout);
    sim_pause("an epoll");
    for (;;) {
        int n = __real_epoll_wait(epoll, events, most, 0);
        if (n || timeout == 0 || !sim_wait_fds(&self, 1, deadline, "an epoll, by"))
            return n;
    }
}

/* Reading and writing. */

/* After the call: threads that wait look again. */
static ssize_t changes(ssize_t result)
{
    sim.changed = true;
    return result;
}

static ssize_t makes_room(ssize_t result)
{
    sim.changed |= senders > 0;
    return result;
}

WRAP(ssize_t, read, int fd, void *bytes, size_t n)
{
    return await(fd, POLLIN, 0, "a read of") ? makes_room(__real_read(fd, bytes, n)) : -1;
}

WRAP(ssize_t, write, int fd, const void *bytes, size_t n)
{
    return await(fd, POLLOUT, 0, "a write to") ? changes(__real_write(fd, bytes, n)) : -1;
}

WRAP(int, eventfd_read, int fd, eventfd_t *value)
{
    return await(fd, POLLIN, 0, "a read of") ? __real_eventfd_read(fd, value) : -1;
}

WRAP(int, eventfd_write, int fd, eventfd_t value)
{
    return await(fd, POLLOUT, 0, "a write to") ? (int)changes(__real_eventfd_write(fd, value)) : -1;
}

/* A stream's socket may take a part; the caller goes on with the rest. */
WRAP(ssize_t, sendmsg, int fd, const struct msghdr *message, int flags)
{
    if (!waits(fd))
        return __real_sendmsg(fd, message, flags);
    return await(fd, POLLOUT, flags, "a send to") ? changes(__real_sendmsg(fd, message, flags | MSG_DONTWAIT)) : -1;
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
    return await(fd, POLLOUT, flags, "a send to") ? changes(__real_sendto(fd, bytes, n, flags, to, length)) : -1;
}

/* Descriptors that came are the receiver's. */
WRAP(ssize_t, recvmsg, int fd, struct msghdr *message, int flags)
{
    if (!await(fd, POLLIN, flags, "a receive from"))
        return -1;
    ssize_t got = makes_room(__real_recvmsg(fd, message, flags));
    for (struct cmsghdr *c = got < 0 ? NULL : CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
        for (size_t at = CMSG_LEN(0); c->cmsg_type == SCM_RIGHTS && at < c->cmsg_len; at += sizeof(int)) {
            int passed;
            memcpy(&passed, (const char *)c + at, sizeof passed);
            own(passed);
        }
    return got;
}

WRAP(int, recvmmsg, int fd, struct mmsghdr *messages, unsigned n, int flags, struct timespec *timeout)
{
    return await(fd, POLLIN, flags, "a receive from")
               ? (int)makes_room(__real_recvmmsg(fd, messages, n, flags, timeout))
               : -1;
}

/* Sockets that connect. */

WRAP(int, bind, int fd, const struct sockaddr *address, socklen_t n)
{
    struct sockaddr_un ours;
    struct stat st;
    const struct sockaddr *as = rename_address(address, &n, &ours);
    int error = __real_bind(fd, as, n);
    if (!error && as == address && address->sa_family == AF_UNIX && n > sizeof(sa_family_t) && fd < FDS &&
        stat(((const struct sockaddr_un *)address)->sun_path, &st) == 0) {
        table[fd].device = st.st_dev;
        table[fd].inode = st.st_ino;
    }
    return error;
}

/* Process that has a socket bound to this file; 0: none. */
static int find_listener(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return 0;
    for (int fd = 0; fd < table_end; fd++)
        if (table[fd].owner && table[fd].inode == st.st_ino && table[fd].device == st.st_dev)
            return table[fd].owner->id;
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
    if (!waits(fd))
        return __real_connect(fd, address, n);
    sim_pause("to connect");
    const struct sockaddr *as = rename_address(address, &n, &ours);
    if (as == address && address->sa_family == AF_UNIX) {
        name_socket(fd);
        table[fd].peer = find_listener(((const struct sockaddr_un *)address)->sun_path);
    }
    return (int)changes(__real_connect(fd, as, n));
}

WRAP(int, accept4, int fd, struct sockaddr *address, socklen_t *n, int flags)
{
    struct sockaddr_un peer = {.sun_family = AF_UNIX};
    socklen_t length = sizeof peer - 1;
    if (!await(fd, POLLIN, 0, "an accept from"))
        return -1;
    int accepted = own(__real_accept4(fd, address, n, flags));
    if (waits(accepted) && getpeername(accepted, (struct sockaddr *)&peer, &length) == 0)
        sscanf(peer.sun_path + 1, "dealfs-sim-%*d-%d", &table[accepted].peer);
    return accepted;
}

WRAP(int, getsockopt, int fd, int level, int option, void *value, socklen_t *n)
{
    int error = __real_getsockopt(fd, level, option, value, n);
    if (!error && level == SOL_SOCKET && option == SO_PEERCRED && waits(fd) && table[fd].peer)
        ((struct ucred *)value)->pid = table[fd].peer;
    return error;
}

WRAP(int, setsockopt, int fd, int level, int option, const void *value, socklen_t n)
{
    if (!waits(fd) || level != SOL_SOCKET || (option != SO_RCVTIMEO && option != SO_SNDTIMEO))
        return __real_setsockopt(fd, level, option, value, n);
    struct timeval most;
    memcpy(&most, value, sizeof most);
    table[fd].timeout[option == SO_SNDTIMEO] = (uint64_t)most.tv_sec * SIM_SECOND + (uint64_t)most.tv_usec * 1000;
    return 0;
}
