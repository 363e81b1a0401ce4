/* The user can write to the folder of the socket. So a child process with the rights of that user makes and removes the
 * socket, and root opens nothing in the folder. The socket's mode lets only that user connect, and SO_PEERCRED shows
 * which user has connected.
 *
 * After SIGTERM, no connection is accepted. The current mount has END_S to end: in a pod, its processes get SIGTERM at
 * the same time. */
#include "fs/keeper/lobby.h"

#include "fs/attach/mounter.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/process.h"
#include "fs/base/ready.h"

#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { END_S = 20, SOCKET_S = 10, WAITING_MOST = 16, PAUSE_MS = 100, SILENCE_S = 60 };

/* --- the socket --- */

static int address_of(const struct lobby *l, struct sockaddr_un *address)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(l->path) >= sizeof address->sun_path)
        return -ENAMETOOLONG;
    strcpy(address->sun_path, l->path);
    return 0;
}

/* Is it the socket of a mounter that was killed? */
static bool is_left(const struct sockaddr_un *address)
{
    struct stat st;
    CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd >= 0 && lstat(address->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
           connect(fd, (const struct sockaddr *)address, sizeof *address) < 0 && errno == ECONNREFUSED;
}

static int make_socket(const struct lobby *l, const struct sockaddr_un *address)
{
    const struct sockaddr *a = (const struct sockaddr *)address;
    umask(077);
    if (bind(l->listening, a, sizeof *address) == 0)
        return 0;
    if (errno != EADDRINUSE || !is_left(address))
        return -errno;
    return unlink(address->sun_path) < 0 || bind(l->listening, a, sizeof *address) < 0 ? -errno : 0;
}

static int remove_socket(const struct lobby *l, const struct sockaddr_un *address)
{
    (void)l;
    return unlink(address->sun_path) < 0 ? -errno : 0;
}

struct change {
    const struct lobby *lobby;
    int (*make)(const struct lobby *, const struct sockaddr_un *);
};

static int become_and_make(const void *change)
{
    const struct change *c = change;
    struct sockaddr_un address;
    int error = address_of(c->lobby, &address);
    if (!error)
        error = process_become(c->lobby->uid, c->lobby->gid);
    return error ? error : c->make(c->lobby, &address);
}

static int do_as_user(const struct lobby *l, int (*make)(const struct lobby *, const struct sockaddr_un *))
{
    return process_do_in_child(become_and_make, &(struct change){l, make}, SOCKET_S);
}

static int open_signals(void)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_SETMASK, &ends, NULL);
    return signalfd(-1, &ends, SFD_CLOEXEC);
}

int lobby_init(struct lobby *l)
{
    l->end = 0;
    l->listening = -1;
    l->signals = open_signals();
    return l->signals < 0 ? -errno : 0;
}

int lobby_open(struct lobby *l)
{
    l->listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error = l->listening < 0 ? -errno : do_as_user(l, make_socket);
    if (!error && listen(l->listening, WAITING_MOST) < 0) /* by this process: SO_PEERCRED shows root */
        error = -errno;
    if (error)
        log_error("make the socket %s as user %u: %s", l->path, (unsigned)l->uid, strerror(-error));
    return error;
}

/* --- connections --- */

int lobby_prepare(int connection)
{
    const struct timeval silence = {.tv_sec = (time_t)(clock_bound("DEALFS_MOUNTER_PATIENCE", SILENCE_S) / SECOND)};
    const int on = 1;
    return setsockopt(connection, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0 ||
                   setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence) < 0
               ? -errno
               : 0;
}

static int refuse(int fd, int error, struct mounter_offer *offer)
{
    offer->form = MOUNTER_FORM;
    offer->error = error;
    log_warning("a process was refused: %s", offer->why);
    mounter_send(fd, offer, sizeof *offer, NULL);
    return -1;
}

/* Accepts a connection, or refuses it: -1. */
static int let_in(const struct lobby *l, bool busy)
{
    struct mounter_offer offer = {0};
    struct ucred who;
    socklen_t n = sizeof who;
    CLEANUP_CLOSE int fd = accept4(l->listening, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0 && errno != EAGAIN && errno != ECONNABORTED)
        clock_sleep(PAUSE_MS * MILLISECOND); /* no descriptors are left, or no memory */
    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) < 0)
        return -1;
    if (who.uid != l->uid || who.gid != l->gid) {
        snprintf(offer.why, sizeof offer.why, "it serves user %u with group %u, not user %u with group %u",
                 (unsigned)l->uid, (unsigned)l->gid, (unsigned)who.uid, (unsigned)who.gid);
        return refuse(fd, -EPERM, &offer);
    }
    if (busy) {
        snprintf(offer.why, sizeof offer.why, "another `dealfs mount` uses it");
        return refuse(fd, -EBUSY, &offer);
    }
    return lobby_prepare(fd) < 0 ? -1 : steal_fd(fd);
}

/* The second signal ends the mounter at once. */
static void take_signal(struct lobby *l)
{
    struct signalfd_siginfo signal;
    if (read(l->signals, &signal, sizeof signal) != sizeof signal)
        return;
    uint64_t now = clock_now();
    l->end = l->end ? now : now + END_S * SECOND;
    if (l->listening < 0)
        return;
    do_as_user(l, remove_socket);
    close(l->listening);
    l->listening = -1;
}

int lobby_await(struct lobby *l)
{
    while (!l->end) {
        struct pollfd fd[] = {{.fd = l->signals, .events = POLLIN}, {.fd = l->listening, .events = POLLIN}};
        ready_wait(fd, 2, -1);
        int came = !fd[0].revents && fd[1].revents ? let_in(l, false) : -1;
        if (came >= 0)
            return came;
        if (fd[0].revents)
            take_signal(l);
    }
    return -1;
}

bool lobby_wait(struct lobby *l, int pidfd)
{
    for (;;) {
        struct pollfd fd[] = {{.fd = pidfd, .events = POLLIN},
                              {.fd = l->signals, .events = POLLIN},
                              {.fd = l->listening, .events = POLLIN}};
        uint64_t now = clock_now();
        if (l->end && now >= l->end)
            return false;
        if (ready_wait(fd, 3, l->end ? (int)((l->end - now) / MILLISECOND) + 1 : -1) < 0)
            continue;
        if (fd[0].revents)
            return true;
        if (fd[1].revents)
            take_signal(l);
        else if (fd[2].revents)
            let_in(l, true);
    }
}
