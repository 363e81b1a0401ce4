/* Waits for descriptors; and models two kinds of descriptors that couriers and servers use all the time:
 *
 *   eventfd   a number. Its descriptor is an empty file in memory, whose inode identifies it after it was sent to
 *             another process
 *   epoll     what it watches. Edges (EPOLLET) are modelled for eventfds
 *
 * The kernel is asked about the others once after each change of any of them. A thread for which nothing is ready waits
 * in the scheduler until something has changed. */
#include "tests/sim/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WATCHED = 16 };

struct event {
    struct event *next;
    ino_t inode;
    uint64_t count;
    bool blocking;
};

struct watch {
    int fd;
    struct event *event; /* NULL: a descriptor of the kernel's */
    bool fresh;          /* written to since epoll_wait has said so */
    struct epoll_event wanted;
};

struct epoll {
    struct epoll *next;
    struct watch watch[WATCHED];
    unsigned count, turn; /* turn: which one is looked at first, so that none is forgotten */
};

static struct event *events;
static struct epoll *epolls;
static uint64_t changes = 2; /* of the kernel's descriptors */
static unsigned senders;     /* threads that wait for room */

int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __real_fcntl(int fd, int command, ...);
int __real_memfd_create(const char *name, unsigned flags);

ssize_t fd_changed(ssize_t result)
{
    changes++;
    sim.changed = true;
    return result;
}

ssize_t fd_made_room(ssize_t result)
{
    changes++;
    sim.changed |= senders > 0;
    return result;
}

/* --- what is ready --- */

static short event_ready(const struct event *e)
{
    return (short)((e->count ? POLLIN : 0) | POLLOUT);
}

/* All that were asked about before are asked about again, in one call. */
static void ask_kernel(void)
{
    static struct pollfd ask[FDS];
    nfds_t n = 0;
    for (int fd = 0; fd < sim_fd_end; fd++)
        if (sim_fd_table[fd].asked)
            ask[n++] = (struct pollfd){.fd = fd, .events = POLLIN | POLLOUT | POLLRDHUP};
    __real_poll(ask, n, 0);
    while (n-- > 0) {
        sim_fd_table[ask[n].fd].seen = ask[n].revents;
        sim_fd_table[ask[n].fd].asked = changes;
    }
}

static short kernel_ready(int fd)
{
    struct descriptor *d = &sim_fd_table[fd];
    if (d->asked == changes)
        return d->seen;
    d->asked = 1;
    if (fd >= sim_fd_end)
        sim_fd_end = fd + 1;
    ask_kernel();
    return d->seen;
}

static short watch_ready(const struct watch *w)
{
    short ready = w->event ? event_ready(w->event) : kernel_ready(w->fd);
    ready &= (short)((w->wanted.events & 0xffff) | POLLERR | POLLHUP);
    return w->wanted.events & EPOLLET && !w->fresh ? 0 : ready;
}

static short epoll_ready(const struct epoll *e)
{
    for (unsigned i = 0; i < e->count; i++)
        if (watch_ready(&e->watch[i]))
            return POLLIN;
    return 0;
}

short fd_ready(int fd, short wanted)
{
    if (fd < 0)
        return 0;
    if (fd >= FDS)
        sim_fail("descriptor %d is not simulated", fd);
    const struct descriptor *d = &sim_fd_table[fd];
    short ready = d->event ? event_ready(d->event) : d->epoll ? epoll_ready(d->epoll) : kernel_ready(fd);
    return (short)(ready & (wanted | POLLERR | POLLHUP | POLLNVAL));
}

/* --- waiting --- */

static bool is_blocking(int fd)
{
    struct descriptor *d = &sim_fd_table[fd];
    if (d->event)
        return d->event->blocking;
    if (!d->flags_known)
        d->blocking = !(__real_fcntl(fd, F_GETFL, NULL) & O_NONBLOCK);
    d->flags_known = true;
    return d->blocking;
}

/* Other descriptors may be copies of it. */
void fd_set_flags(int fd, int flags)
{
    if (fd_is_known(fd) && sim_fd_table[fd].event)
        sim_fd_table[fd].event->blocking = !(flags & O_NONBLOCK);
    for (int i = 0; i < sim_fd_end; i++)
        sim_fd_table[i].flags_known = false;
}

bool fd_await(int fd, short wanted, int flags, const char *what)
{
    if (!fd_waits(fd))
        return true;
    sim_pause(what);
    if (flags & MSG_DONTWAIT || !is_blocking(fd))
        return true;
    struct pollfd self = {.fd = fd, .events = wanted};
    uint64_t most = sim_fd_table[fd].timeout[wanted == POLLOUT];
    uint64_t deadline = most ? sim.now + most : SIM_NEVER;
    bool late = false;
    senders += wanted == POLLOUT;
    while (!late && !fd_ready(fd, wanted))
        late = !sim_wait_fds(&self, 1, deadline, what);
    senders -= wanted == POLLOUT;
    errno = late ? EAGAIN : errno;
    return !late;
}

static uint64_t deadline_of(int milliseconds)
{
    return milliseconds < 0 ? SIM_NEVER : sim.now + (uint64_t)milliseconds * (SIM_SECOND / 1000);
}

static int look_at(struct pollfd *fds, nfds_t count)
{
    int n = 0;
    for (nfds_t i = 0; i < count; i++) {
        fds[i].revents = fd_ready(fds[i].fd, fds[i].events);
        n += fds[i].revents != 0;
    }
    return n;
}

WRAP(int, poll, struct pollfd *fds, nfds_t count, int timeout)
{
    if (!sim_is_simulated())
        return __real_poll(fds, count, timeout);
    uint64_t deadline = deadline_of(timeout);
    sim_pause("a poll");
    for (;;) {
        int n = look_at(fds, count);
        if (n || timeout == 0 || !sim_wait_fds(fds, count, deadline, "a poll of"))
            return n;
    }
}

/* --- eventfds --- */

static struct event *event_of(int fd)
{
    return fd_is_known(fd) ? sim_fd_table[fd].event : NULL;
}

WRAP(int, eventfd, unsigned value, int flags)
{
    struct stat st;
    if (!sim_is_simulated())
        return __real_eventfd(value, flags);
    struct event *e = sim_allocate(NULL, sizeof *e);
    int fd = fd_own(__real_memfd_create("eventfd", MFD_CLOEXEC));
    if (fd < 0 || flags & EFD_SEMAPHORE || fstat(fd, &st) < 0)
        sim_fail("no eventfd can be made");
    *e = (struct event){.next = events, .inode = st.st_ino, .count = value, .blocking = !(flags & EFD_NONBLOCK)};
    events = e;
    sim_fd_table[fd].event = e;
    sim_fd_table[fd].kind = WAITS;
    return fd;
}

void fd_came(int fd)
{
    struct stat st;
    if (fd_own(fd) < 0 || !fd_is_known(fd) || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    for (struct event *e = events; e; e = e->next)
        if (e->inode == st.st_ino) {
            sim_fd_table[fd].event = e;
            sim_fd_table[fd].kind = WAITS;
        }
}

static ssize_t event_take(struct event *e, void *to, size_t n)
{
    if (!e->count || n < sizeof e->count) {
        errno = e->count ? EINVAL : EAGAIN;
        return -1;
    }
    memcpy(to, &e->count, sizeof e->count);
    e->count = 0;
    return sizeof e->count;
}

static ssize_t event_add(struct event *e, const void *from, size_t n)
{
    uint64_t more;
    if (n < sizeof more) {
        errno = EINVAL;
        return -1;
    }
    memcpy(&more, from, sizeof more);
    e->count += more;
    for (struct epoll *p = epolls; p; p = p->next)
        for (unsigned i = 0; i < p->count; i++)
            p->watch[i].fresh |= p->watch[i].event == e;
    sim.changed = true;
    return sizeof more;
}

WRAP(ssize_t, read, int fd, void *bytes, size_t n)
{
    if (!fd_await(fd, POLLIN, 0, "a read of"))
        return -1;
    struct event *e = event_of(fd);
    return e              ? event_take(e, bytes, n)
           : fd_waits(fd) ? fd_made_room(__real_read(fd, bytes, n))
                          : __real_read(fd, bytes, n);
}

WRAP(ssize_t, write, int fd, const void *bytes, size_t n)
{
    if (!fd_await(fd, POLLOUT, 0, "a write to"))
        return -1;
    struct event *e = event_of(fd);
    return e              ? event_add(e, bytes, n)
           : fd_waits(fd) ? fd_changed(__real_write(fd, bytes, n))
                          : __real_write(fd, bytes, n);
}

WRAP(int, eventfd_read, int fd, eventfd_t *value)
{
    return __wrap_read(fd, value, sizeof *value) == sizeof *value ? 0 : -1;
}

WRAP(int, eventfd_write, int fd, eventfd_t value)
{
    return __wrap_write(fd, &value, sizeof value) == sizeof value ? 0 : -1;
}

/* --- epolls --- */

WRAP(int, epoll_create1, int flags)
{
    if (!sim_is_simulated())
        return __real_epoll_create1(flags);
    struct epoll *e = memset(sim_allocate(NULL, sizeof *e), 0, sizeof *e);
    int fd = fd_own(__real_memfd_create("epoll", MFD_CLOEXEC));
    if (fd < 0)
        sim_fail("no epoll can be made");
    e->next = epolls;
    epolls = e;
    sim_fd_table[fd].epoll = e;
    return fd;
}

static void forget_watch(struct epoll *e, unsigned i)
{
    e->count--;
    memmove(&e->watch[i], &e->watch[i + 1], (e->count - i) * sizeof *e->watch);
}

static unsigned find_watch(const struct epoll *e, int fd)
{
    unsigned i = 0;
    while (i < e->count && (e->watch[i].fd != fd || e->watch[i].event != event_of(fd)))
        i++;
    return i;
}

WRAP(int, epoll_ctl, int epoll, int command, int fd, struct epoll_event *wanted)
{
    if (!sim_is_simulated())
        return __real_epoll_ctl(epoll, command, fd, wanted);
    struct epoll *e = fd_is_known(epoll) ? sim_fd_table[epoll].epoll : NULL;
    if (!e || e->count == WATCHED || command == EPOLL_CTL_MOD)
        sim_fail("epoll_ctl of %d is not simulated", epoll);
    unsigned i = find_watch(e, fd);
    bool is_there = i < e->count;
    errno = __real_fcntl(fd, F_GETFD, NULL) < 0     ? EBADF
            : command == EPOLL_CTL_ADD && is_there  ? EEXIST
            : command == EPOLL_CTL_DEL && !is_there ? ENOENT
                                                    : 0;
    if (errno)
        return -1;
    if (command == EPOLL_CTL_DEL)
        forget_watch(e, i);
    else
        e->watch[e->count++] = (struct watch){fd, event_of(fd), true, *wanted};
    sim.changed = true;
    return 0;
}

/* The kernel's leave epoll when they are closed. Those of an eventfd stay as long as anybody has a copy of it. */
void fd_leaves(int fd)
{
    for (struct epoll *e = epolls; e; e = e->next)
        for (unsigned i = e->count; i-- > 0;)
            if (e->watch[i].fd == fd && !e->watch[i].event)
                forget_watch(e, i);
}

static int epoll_take(struct epoll *e, struct epoll_event *to, int most)
{
    int n = 0;
    e->turn++;
    for (unsigned i = 0; i < e->count && n < most; i++) {
        struct watch *w = &e->watch[(e->turn + i) % e->count];
        short ready = watch_ready(w);
        if (!ready)
            continue;
        to[n++] = (struct epoll_event){.events = (uint32_t)ready, .data = w->wanted.data};
        w->fresh = false;
    }
    return n;
}

WRAP(int, epoll_wait, int epoll, struct epoll_event *to, int most, int timeout)
{
    if (!sim_is_simulated())
        return __real_epoll_wait(epoll, to, most, timeout);
    struct pollfd self = {.fd = epoll, .events = POLLIN};
    uint64_t deadline = deadline_of(timeout);
    sim_pause("an epoll");
    for (;;) {
        int n = epoll_take(sim_fd_table[epoll].epoll, to, most);
        if (n || timeout == 0 || !sim_wait_fds(&self, 1, deadline, "an epoll, by"))
            return n;
    }
}
