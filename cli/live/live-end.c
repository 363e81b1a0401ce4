/* Whether a mount has ended with all that belongs to it. */
#include "cli/base/guard.h"
#include "cli/live/live.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/process.h"
#include "fs/base/ready.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>

/* Keeper and server hold STATE/lock while they live, and `dealfs mount` while it starts them. */
int live_state_is_free(const char *state)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/lock", state);
    if (path.failed)
        return -ENOMEM;
    CLEANUP_CLOSE int fd = open(path.data, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) /* ELOOP: a link, which no mount has made */
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
    return flock(fd, LOCK_SH | LOCK_NB) < 0 ? -errno : 0;
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
    while (live_state_is_free(c->state)) {
        if (clock_now() > w->deadline)
            return -ETIMEDOUT;
        clock_sleep(TICK_MS * MILLISECOND);
    }
    return 0;
}

/* A process that was watched; ESRCH: it had ended before. */
static int watch_process(pid_t process)
{
    int pidfd = process > 0 ? (int)syscall(SYS_pidfd_open, process, 0) : -ESRCH;
    return pidfd == -1 ? -errno : pidfd;
}

static bool await_end(int pidfd, uint64_t deadline)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    if (pidfd < 0)
        return pidfd == -ESRCH;
    for (int ready = -1; ready < 0;) {
        uint64_t now = clock_now();
        ready = ready_wait(&end, 1, deadline > now ? (int)((deadline - now) / MILLISECOND) : 0);
    }
    return end.revents;
}

int live_wait_gone(const struct live *live, unsigned seconds)
{
    struct lock_wait lock = {live, clock_now() + seconds * SECOND};
    CLEANUP_STR struct str nothing = STR_INIT;
    CLEANUP_CLOSE int keeper = watch_process(live->keeper);
    CLEANUP_CLOSE int mounter = watch_process(live->mounter);
    if (!await_end(keeper, lock.deadline))
        return -ETIMEDOUT;
    if (live->configured && live->config.owner_uid == geteuid())
        return await_lock(&lock, &nothing);
    int error = live->configured ? guard_run(await_lock, &lock, seconds + 1, &nothing) : 0;
    return error ? -ETIMEDOUT : await_end(mounter, lock.deadline) ? 0 : -ETIMEDOUT;
}
