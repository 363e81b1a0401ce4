#include "mpi/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <unistd.h>

static int descriptor = -1;

int signals_open(void)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigprocmask(SIG_BLOCK, &ours, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (descriptor < 0)
        descriptor = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    return descriptor < 0 ? -errno : descriptor;
}

int signals_take(void)
{
    struct signalfd_siginfo info;
    return read(descriptor, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

void signals_obey(void)
{
    int which = signals_take();
    if (which)
        _exit(128 + which);
}

static void *obey_until(void *user)
{
    const int *over = user;
    struct pollfd ready[] = {{.fd = descriptor, .events = POLLIN}, {.fd = *over, .events = POLLIN | POLLHUP}};
    while (!ready[1].revents) {
        if (poll(ready, 2, -1) > 0 && !ready[1].revents)
            signals_obey();
    }
    return NULL;
}

int signals_obey_during(int (*wait)(void))
{
    int over[2];
    pthread_t thread;
    if (pipe2(over, O_CLOEXEC) < 0)
        return wait();
    bool watched = pthread_create(&thread, NULL, obey_until, &over[0]) == 0;
    int result = wait();
    close(over[1]);
    if (watched)
        pthread_join(thread, NULL);
    close(over[0]);
    return result;
}
