/* Whether a mount has ended with all that belongs to it. */
#include "cli/base/guard.h"
#include "cli/live/live.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/syscall.h>

/* Keeper and server hold STATE/lock while they live, and `dealfs mount` while it starts them. */
bool live_state_is_free(const char *state)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/lock", state);
    CLEANUP_CLOSE int fd = path.failed ? -1 : open(path.data, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0;
}

struct lock_wait {
    const struct live *live;
    uint64_t deadline;
};

/* Called in a child, which becomes the owner if that is another user. */
static int await_lock(void *user, struct str *out)
{
    enum { TICK_MS = 10 };
    const struct lock_wait *w = user;
    const struct mount_config *c = &w->live->config;
    (void)out;
    if (geteuid() == 0 && process_become(c->owner_uid, c->owner_gid))
        return -EPERM;
    while (!live_state_is_free(c->state)) {
        if (clock_now() > w->deadline)
            return -ETIMEDOUT;
        clock_sleep(TICK_MS * MILLISECOND);
    }
    return 0;
}

static bool await_end(int pidfd, uint64_t deadline)
{
    uint64_t now = clock_now();
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    return pidfd < 0 || poll(&end, 1, deadline > now ? (int)((deadline - now) / MILLISECOND) : 0) != 0;
}

static int watch_process(pid_t process)
{
    return process > 0 ? (int)syscall(SYS_pidfd_open, process, 0) : -1;
}

int live_wait_gone(const struct live *live, unsigned seconds)
{
    struct lock_wait lock = {live, clock_now() + seconds * SECOND};
    CLEANUP_STR struct str nothing = STR_INIT;
    CLEANUP_CLOSE int keeper = watch_process(live->keeper), mounter = watch_process(live->mounter);
    if (!await_end(keeper, lock.deadline))
        return -ETIMEDOUT;
    if (live->configured && live->config.owner_uid == geteuid())
        return await_lock(&lock, &nothing);
    int error = live->configured ? guard_run(await_lock, &lock, seconds + 1, &nothing) : 0;
    return error ? -ETIMEDOUT : await_end(mounter, lock.deadline) ? 0 : -ETIMEDOUT;
}
