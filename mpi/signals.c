#include "mpi/signals.h"

#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { NOTICE_S = 10 };

static int descriptor = -1;
static void (*while_waiting)(void);

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
    if (while_waiting)
        while_waiting();
}

void signals_while_waiting(void (*work)(void))
{
    while_waiting = work;
}

struct obeying {
    int over; /* readable: the wait is over */
    const char *notice;
};

static void *obey_until(void *user)
{
    struct obeying *o = user;
    int milliseconds = (int)(clock_bound("DEALFS_JOIN_NOTICE", NOTICE_S) / MILLISECOND);
    struct pollfd ready[] = {{.fd = descriptor, .events = POLLIN}, {.fd = o->over, .events = POLLIN | POLLHUP}};
    while (!ready[1].revents) {
        int n = ready_wait(ready, 2, o->notice ? milliseconds : -1);
        if (n > 0 && !ready[1].revents)
            signals_obey();
        if (n == 0)
            log_warning("%s", o->notice);
        if (n == 0)
            o->notice = NULL;
    }
    return NULL;
}

int signals_obey_during(int (*wait)(void), const char *notice)
{
    int over[2];
    pthread_t thread;
    if (pipe2(over, O_CLOEXEC) < 0)
        return wait();
    struct obeying obeying = {over[0], notice};
    bool watched = pthread_create(&thread, NULL, obey_until, &obeying) == 0;
    int result = wait();
    close(over[1]);
    if (watched)
        pthread_join(thread, NULL);
    close(over[0]);
    return result;
}
