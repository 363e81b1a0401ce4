/* Implements child.h. */
#include "cli/base/child.h"

#include "fs/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t child_fork(int *end)
{
    int ends[2];
    *end = -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t child = fork();
    int error = -errno, mine = child == 0;
    close(ends[!mine]);
    if (child < 0)
        close(ends[mine]);
    else
        *end = ends[mine];
    return child < 0 ? error : child;
}

void child_end(pid_t child, uint64_t deadline)
{
    enum { KILLED_S = 5, TICK_MS = 10 };
    while (child && waitpid(child, NULL, WNOHANG) == 0 && clock_now() < deadline + KILLED_S * SECOND) {
        if (clock_now() > deadline)
            kill(child, SIGKILL);
        clock_sleep(TICK_MS * MILLISECOND);
    }
}

void child_self(char path[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[n > 0 ? n : 0] = '\0';
}
