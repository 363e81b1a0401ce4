/* Watch a process by its pidfd and by the state of its leader. */
#include "fs/mount/process.h"

#include "fs/base/cleanup.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>

int process_watch(pid_t id, struct process *p)
{
    int pidfd = id > 0 ? (int)syscall(SYS_pidfd_open, id, 0) : -1; /* close-on-exec as it is */
    if (pidfd < 0)
        return id > 0 ? -errno : -ESRCH;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)id);
    *p = (struct process){id, pidfd, open(path, O_RDONLY | O_CLOEXEC)};
    return 0;
}

void process_forget(struct process *p)
{
    if (p->pidfd >= 0)
        close(p->pidfd);
    if (p->stat >= 0)
        close(p->stat);
    *p = (struct process){0, -1, -1};
}

static bool is_readable(int pidfd)
{
    struct pollfd gone = {.fd = pidfd, .events = POLLIN};
    return poll(&gone, 1, 0) > 0;
}

bool process_is_gone(pid_t id)
{
    struct process p;
    int error = process_watch(id, &p);
    if (error)
        return error == -ESRCH;
    bool gone = is_readable(p.pidfd);
    process_forget(&p);
    return gone;
}

bool process_is_dead(const struct process *p)
{
    if (is_readable(p->pidfd))
        return true;
    char line[256];
    ssize_t n = p->stat >= 0 ? pread(p->stat, line, sizeof line - 1, 0) : -1;
    if (n < 0)
        return errno == ESRCH;
    line[n] = '\0';
    char *name_end = strrchr(line, ')'); /* the name in it may have parentheses of its own */
    return name_end && name_end[1] == ' ' && (name_end[2] == 'Z' || name_end[2] == 'X');
}
