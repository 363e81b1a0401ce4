/* A child that may hang instead of this process.
 *
 * A request that a server has read and does not answer cannot be interrupted, not even by SIGKILL. So a process that
 * must not hang lets a child access the mount, and reads the result from a pipe with a time limit. */
#include "cli/base/guard.h"

#include "cli/base/child.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPLY_MOST = 64 << 20 };

/* The child closes the standard files: if it cannot be killed, it would keep a pipe to `less` open forever. */
static void leave_standard_files(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2 && null >= 0; fd++)
        dup2(null, fd);
}

static _Noreturn void guard_child(int (*work)(void *, struct str *), void *user, int to)
{
    struct str out = STR_INIT;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    leave_standard_files();
    int32_t result = work(user, &out);
    if (result == 0 && out.failed)
        result = -ENOMEM;
    if (file_write_all(to, &result, sizeof result) == 0 && out.length > 0)
        file_write_all(to, out.data, out.length);
    _exit(0);
}

int guard_start(int (*work)(void *user, struct str *out), void *user, struct guard *guard)
{
    *guard = (struct guard){.fd = -1};
    guard->pid = child_fork(&guard->fd);
    if (guard->pid == 0)
        guard_child(work, user, guard->fd);
    return guard->pid < 0 ? guard->pid : 0;
}

void guard_end(struct guard *guard)
{
    int status;
    if (guard->fd < 0)
        return;
    close(guard->fd);
    guard->fd = -1;
    kill(guard->pid, SIGKILL);
    waitpid(guard->pid, &status, WNOHANG);
    str_fini(&guard->reply);
}

/* Read the available bytes; 0: that was all. */
static int take_piece(struct guard *guard)
{
    char *room = str_reserve(&guard->reply, 65536);
    if (!room)
        return -ENOMEM;
    ssize_t n = read(guard->fd, room, 65536);
    if (n < 0)
        return errno == EINTR ? -EAGAIN : -errno;
    guard->reply.length += (size_t)n;
    return guard->reply.length > REPLY_MOST ? -EFBIG : n > 0 ? -EAGAIN : 0;
}

static int guard_result(struct guard *guard, struct str *out)
{
    int32_t result;
    int status;
    waitpid(guard->pid, &status, 0);
    if (guard->reply.length < sizeof result)
        return -EIO;
    memcpy(&result, guard->reply.data, sizeof result);
    str_add(out, guard->reply.data + sizeof result, guard->reply.length - sizeof result);
    return out->failed ? -ENOMEM : result;
}

bool guard_take(struct guard *guard, struct str *out, int *result)
{
    int error = -EAGAIN;
    while (error == -EAGAIN && ready_now(guard->fd, POLLIN))
        error = take_piece(guard);
    if (error == -EAGAIN)
        return false;
    *result = error;
    if (error == 0) {
        *result = guard_result(guard, out);
        close(guard->fd);
        guard->fd = -1;
        str_fini(&guard->reply);
    }
    guard_end(guard);
    return true;
}

int guard_await(struct guard *guard, uint64_t deadline, struct str *out)
{
    int result;
    while (!guard_take(guard, out, &result)) {
        uint64_t now = clock_now();
        struct pollfd ready = {.fd = guard->fd, .events = POLLIN};
        if (now < deadline && ready_wait(&ready, 1, (int)((deadline - now) / MILLISECOND) + 1))
            continue;
        result = -ETIMEDOUT;
        guard_end(guard);
        break;
    }
    return result;
}

int guard_run(int (*work)(void *user, struct str *out), void *user, unsigned seconds, struct str *out)
{
    uint64_t deadline = clock_now() + seconds * SECOND;
    struct guard guard;
    int error = guard_start(work, user, &guard);
    return error ? error : guard_await(&guard, deadline, out);
}
