/* The child starts a new session, so that Ctrl-C at our terminal does not reach it, and keeps none of our files
 * open. */
#include "cli/mount/keeper-start.h"

#include "cli/base/child.h"
#include "cli/base/interrupt.h"
#include "cli/base/place.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/process.h"
#include "fs/base/ready.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { ABOVE_ALL = 64, TICK_MS = 200, LINE_MOST = 16 << 10 };

void launch_init(struct launch *l)
{
    memset(l, 0, sizeof *l);
    for (int i = 0; i <= FD_LAST; i++)
        l->fd[i] = -1;
}

/* A program that an ordinary user executes loses its capabilities, except ambient ones. */
static int keep_sys_admin(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &header, data) < 0)
        return -errno;
    data[0].inheritable |= 1u << CAP_SYS_ADMIN;
    if (syscall(SYS_capset, &header, data) < 0 || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0) < 0)
        return -errno;
    return 0;
}

/* First all are moved to high numbers, because the target of one may be the current number of another. */
static int place_descriptors(const int from[], int ready)
{
    int high[FD_LAST + 1];
    for (int i = 0; i <= FD_LAST; i++) {
        int fd = i == FD_READY ? ready : from[i];
        high[i] = fd < 0 ? -1 : fcntl(fd, F_DUPFD, ABOVE_ALL);
        if (fd >= 0 && high[i] < 0)
            return -errno;
    }
    int null = open("/dev/null", O_RDWR);
    int log = high[FD_LOG] >= 0 ? high[FD_LOG] : null;
    if (null < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        return -errno;
    for (int i = 3; i <= FD_LAST; i++) {
        close(i);
        if (high[i] >= 0 && dup2(high[i], i) < 0)
            return -errno;
    }
    return close_range(FD_LAST + 1, ~0u, 0) < 0 ? -errno : 0;
}

static _Noreturn void become_keeper(const struct launch *l, const char *program, int ready)
{
    char line[PATH_MAX + 64];
    process_reset_signals();
    setsid();
    umask(077);
    int error = l->may_mount ? keep_sys_admin() : 0;
    if (!error)
        error = place_descriptors(l->fd, ready);
    if (!error) {
        ready = FD_READY;
        execl(program, "dealfs-keeper", l->state, (char *)NULL);
        error = -errno;
    }
    int n = snprintf(line, sizeof line, "start %s: %s\n", program, strerror(-error));
    file_write_all(ready, line, (size_t)n);
    _exit(1);
}

/* Read one line, or what was received before the other end was closed. The writer may be another user's server. */
static int read_line(int fd, struct str *line)
{
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        char byte;
        if (interrupted)
            return -EINTR;
        if (ready_wait(&ready, 1, TICK_MS) <= 0)
            continue;
        ssize_t got = read(fd, &byte, 1);
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got == 0 || (got == 1 && (byte == '\n' || line->length == LINE_MOST)))
            return line->failed ? -ENOMEM : 0;
        if (got == 1)
            str_add(line, &byte, 1);
    }
}

static int await_ready(int fd, struct str *why)
{
    CLEANUP_STR struct str line = STR_INIT;
    int error = read_line(fd, &line);
    if (error == -EINTR)
        str_adds(why, "interrupted");
    if (error)
        return error;
    if (line.length > 0 && strcmp(line.data, "ready") == 0)
        return 0;
    if (line.length > 0)
        str_add_printable(why, line.data, line.length);
    else
        str_adds(why, "the keeper ended without a message");
    return -EIO;
}

int launch_keeper(const struct launch *l, pid_t *pid, struct str *why)
{
    char program[PATH_MAX];
    *pid = 0;
    int error = handover_find_program("dealfs-keeper", program, sizeof program);
    if (error)
        return str_fail(why, error, "find dealfs-keeper: neither beside dealfs nor in ../libexec/dealfs");
    CLEANUP_CLOSE int from = -1;
    pid_t child = child_fork(&from);
    if (child == 0)
        become_keeper(l, program, from);
    if (child < 0)
        return place_error(why, "start", program, child);
    *pid = child;
    return await_ready(from, why);
}
