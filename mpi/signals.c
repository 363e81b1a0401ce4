/* Two signals and no handler. */
#include "mpi/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static sigset_t ours(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
}

void signals_block(void)
{
    sigset_t set = ours();
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

void signals_obey(void)
{
    sigset_t pending;
    if (sigpending(&pending) < 0)
        return;
    if (sigismember(&pending, SIGINT) == 1)
        _exit(128 + SIGINT);
    if (sigismember(&pending, SIGTERM) == 1)
        _exit(128 + SIGTERM);
}

int signals_open(void)
{
    sigset_t set = ours();
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

int signals_take(int fd)
{
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}
