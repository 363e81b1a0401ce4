#include "fs/base/ready.h"

#include "fs/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int ready_wait(struct pollfd *fd, size_t n, int milliseconds)
{
    int ready = poll(fd, n, milliseconds);
    if (ready > 0)
        return ready;
    if (ready < 0 && errno != EINTR) {
        log_error("wait for %zu descriptors: %s", n, strerror(errno));
        _exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < n; i++)
        fd[i].revents = 0;
    return ready;
}

bool ready_now(int fd, short events)
{
    return ready_wait(&(struct pollfd){.fd = fd, .events = events}, 1, 0) > 0;
}
