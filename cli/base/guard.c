/* A child that may hang in our place.
 *
 * A request that a server has read and does not answer cannot be interrupted, not even by SIGKILL. So whoever must come
 * back in any case lets a child touch the mount, and listens to it through a pipe with a time limit. */
#include "cli/base/guard.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPLY_MOST = 64 << 20 };

/* Standard files stay with the parent: a child that cannot be killed would keep a pipe to `less` open for ever. */
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
    leave_standard_files();
    int32_t result = work(user, &out);
    if (result == 0 && out.failed)
        result = -ENOMEM;
    if (file_write_all(to, &result, sizeof result) == 0 && out.length > 0)
        file_write_all(to, out.data, out.length);
    _exit(0);
}

/* Everything that comes through the pipe before the deadline. */
static int listen_until(int fd, uint64_t deadline, struct str *reply)
{
    for (;;) {
        uint64_t now = clock_now();
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int left = now < deadline ? (int)((deadline - now) / MILLISECOND) + 1 : 0;
        int count = poll(&ready, 1, left);

        if (count < 0 && errno != EINTR)
            return -errno;
        if (count < 0)
            continue;
        if (count == 0)
            return -ETIMEDOUT;
        char *room = str_reserve(reply, 65536);
        if (!room)
            return -ENOMEM;
        ssize_t n = read(fd, room, 65536);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            reply->length += (size_t)n;
        if (reply->length > REPLY_MOST)
            return -EFBIG;
    }
}

int guard_run(int (*work)(void *user, struct str *out), void *user, unsigned seconds, struct str *out)
{
    CLEANUP_STR struct str reply = STR_INIT;
    CLEANUP_CLOSE int from = -1;
    int ends[2], status;
    int32_t result;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    from = ends[0];
    pid_t pid = fork();
    if (pid == 0)
        guard_child(work, user, ends[1]);
    int error = pid < 0 ? -errno : 0;
    close(ends[1]);
    if (error)
        return error;
    error = listen_until(from, clock_now() + seconds * SECOND, &reply);
    if (error)
        kill(pid, SIGKILL);
    waitpid(pid, &status, error ? WNOHANG : 0);
    if (error)
        return error;
    if (reply.length < sizeof result)
        return -EIO;
    memcpy(&result, reply.data, sizeof result);
    str_add(out, reply.data + sizeof result, reply.length - sizeof result);
    return out->failed ? -ENOMEM : result;
}

static int read_path(void *user, struct str *out)
{
    return file_read(AT_FDCWD, user, REPLY_MOST, out);
}

int guard_read(const char *path, unsigned seconds, struct str *out)
{
    return guard_run(read_path, (void *)path, seconds, out);
}
