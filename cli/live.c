/* Put together what mountinfo and the keepers tell. */
#include "cli/live.h"

#include "cli/guard.h"
#include "cli/keepers.h"
#include "cli/launcher.h"
#include "cli/place.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/mount/attach.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

const char *live_health_text(enum live_health health)
{
    switch (health) {
    case LIVE_UP:
        return "up";
    case LIVE_ELSEWHERE:
        return "in another namespace";
    case LIVE_HUNG:
        return "hangs";
    case LIVE_DEAD:
        return "dead";
    }
    return "?";
}

void live_fini(struct live *live)
{
    free(live->mountpoint);
    free(live->source);
    free(live->control);
    config_fini(&live->config);
    memset(live, 0, sizeof *live);
}

/* --- its keeper --- */

struct search {
    struct live *live;
    uid_t owner; /* whose mount it is; (uid_t)-1: any that this user may trust */
};

/* What a keeper's configuration says is acted upon; so it must be root's, ours, or the mount's owner's. */
static bool trusted(const struct keeper_seen *keeper, uid_t owner)
{
    if (owner != (uid_t)-1)
        return keeper->uid == 0 || keeper->uid == owner;
    return keeper->uid == 0 || keeper->uid == geteuid() || geteuid() == 0;
}

static bool in_our_namespace(pid_t pid)
{
    char path[64];
    struct stat ours, its;

    snprintf(path, sizeof path, "/proc/%d/ns/mnt", (int)pid);
    return stat("/proc/self/ns/mnt", &ours) == 0 && stat(path, &its) == 0 && ours.st_ino == its.st_ino;
}

static int match_keeper(void *user, const struct keeper_seen *keeper)
{
    struct search *s = user;
    struct mount_config config;

    if (!trusted(keeper, s->owner) || config_read(keeper->state, &config))
        return 0;
    /* Another namespace may have a mount of the same name; one of ours goes first. */
    if (strcmp(config.mountpoint, s->live->mountpoint) != 0 || (s->live->keeper && in_our_namespace(s->live->keeper))) {
        config_fini(&config);
        return 0;
    }
    if (s->live->configured)
        config_fini(&s->live->config);
    s->live->config = config;
    s->live->configured = true;
    s->live->keeper = keeper->pid;
    return 0;
}

/* --- does it answer? --- */

/* The attributes of its root are cached for ever, also when its processes are gone; statfs always asks the server. Of a
 * mount that this user may not enter it tells nothing, and stat says so. */
static int ask(void *path, struct str *out)
{
    struct statfs fs;
    struct stat st;

    (void)out;
    if (statfs(path, &fs) < 0)
        return -errno;
    return stat(path, &st) < 0 ? -errno : 0;
}

static enum live_health probe(const struct live *live)
{
    CLEANUP_STR struct str nothing = STR_INIT;

    switch (guard_run(ask, live->mountpoint, LIVE_PROBE_SECONDS, &nothing)) {
    case 0:
        return LIVE_UP;
    case -ETIMEDOUT:
        return LIVE_HUNG;
    case -EACCES:
    case -EPERM:
        return live->keeper ? LIVE_UP : LIVE_DEAD;
    default:
        return LIVE_DEAD;
    }
}

/* --- one mount --- */

static int set_control(struct live *live)
{
    CLEANUP_STR struct str path = STR_INIT;

    if (live->health == LIVE_DEAD)
        return 0;
    if (live->health == LIVE_ELSEWHERE)
        str_addf(&path, "/proc/%d/root", (int)live->keeper);
    if (live->health == LIVE_ELSEWHERE && !live->config.nested)
        str_adds(&path, live->config.control);
    else
        str_addf(&path, "%s/.dealfs", live->mountpoint);
    live->control = str_steal(&path);
    return live->control ? 0 : -ENOMEM;
}

/* Takes `path` over. */
static int gather(struct live *live, char *path, const struct attach_mount_info *info)
{
    struct search s = {.live = live, .owner = info ? info->uid : (uid_t)-1};

    memset(live, 0, sizeof *live);
    live->mountpoint = path;
    keepers_each(match_keeper, &s);
    if (!info && (!live->keeper || in_our_namespace(live->keeper)))
        return -ENOENT;
    live->source = strdup(info ? info->source : live->config.source);
    if (!live->source)
        return -ENOMEM;
    if (info) {
        live->major = info->major;
        live->minor = info->minor;
    }
    live->health = info ? probe(live) : LIVE_ELSEWHERE;
    return set_control(live);
}

static int is_ours(const struct attach_mount_info *info)
{
    return strcmp(info->type, "fuse.dealfs") == 0;
}

/* Where a mount of ours stands on the path as it was given, nothing needs to be resolved. */
static int find_path(const char *given, char **path, struct str *why)
{
    CLEANUP_FREE char *plain = place_as_given(given);

    if (!plain)
        return -ENOMEM;
    int error = place_mountpoint(given, path, why);
    if (error == -ENOENT || error == -EACCES) {
        /* A mount of another namespace may stand where there is nothing here. */
        str_clear(why);
        *path = steal_pointer(plain);
        error = 0;
    }
    return error;
}

static int find_given(const char *mountpoint, struct live *live, struct str *why)
{
    struct attach_mount_info info = {.source = NULL};
    char *path;

    memset(live, 0, sizeof *live);
    int error = find_path(mountpoint, &path, why);
    if (error)
        return error;
    bool mounted = attach_find(path, &info) == 0;
    bool ours = mounted && is_ours(&info);
    error = gather(live, path, ours ? &info : NULL);
    if (error) {
        str_add_printable(why, path, strlen(path));
        str_addf(why, ": %s", error == -ENOENT ? mounted ? "what is mounted there is not dealfs's" : "nothing is mounted there"
                                               : strerror(-error));
        live_fini(live);
    }
    free(info.source);
    return error;
}

/* Under a launcher each rank may be given the same words, `dealfs umount /mnt/%r` for one. */
int live_find(const char *mountpoint, struct live *live, struct str *why)
{
    struct launcher launcher;

    int error = find_given(mountpoint, live, why);
    if (error != -ENOENT || !strchr(mountpoint, '%'))
        return error;
    launcher_find(&launcher);
    CLEANUP_FREE char *path = place_absolute(mountpoint, launcher.rank);
    if (!path)
        return -ENOMEM;
    str_clear(why);
    return find_given(path, live, why);
}

/* --- all --- */

struct list {
    struct live *live;
    size_t count, room;
    bool mine_only;
};

static struct live *list_add(struct list *l)
{
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 8;
        struct live *more = reallocarray(l->live, room, sizeof *more);
        if (!more)
            return NULL;
        l->live = more;
        l->room = room;
    }
    return &l->live[l->count++];
}

static int list_gather(struct list *l, const char *path, const struct attach_mount_info *info)
{
    char *copy = strdup(path);
    struct live *live = copy ? list_add(l) : NULL;

    if (!live) {
        free(copy);
        return -ENOMEM;
    }
    int error = gather(live, copy, info);
    if (error) {
        live_fini(live);
        l->count--;
    }
    return error == -ENOENT ? 0 : error;
}

static bool listed(const struct list *l, const char *path)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->live[i].mountpoint, path) == 0)
            return true;
    return false;
}

static int add_mounted(void *user, const char *path, const struct attach_mount_info *info)
{
    struct list *l = user;

    if ((l->mine_only && info->uid != geteuid()) || listed(l, path))
        return 0;
    return list_gather(l, path, info);
}

static int add_elsewhere(void *user, const struct keeper_seen *keeper)
{
    struct list *l = user;
    struct mount_config config;
    int error = 0;

    if (!trusted(keeper, (uid_t)-1) || config_read(keeper->state, &config))
        return 0;
    if ((!l->mine_only || config.owner_uid == geteuid()) && !listed(l, config.mountpoint))
        error = list_gather(l, config.mountpoint, NULL);
    config_fini(&config);
    return error;
}

static int by_mountpoint(const void *a, const void *b)
{
    return strcmp(((const struct live *)a)->mountpoint, ((const struct live *)b)->mountpoint);
}

int live_each(int (*each)(void *user, const struct live *live), void *user)
{
    struct list l = {.mine_only = geteuid() != 0};
    int result = attach_each("fuse.dealfs", add_mounted, &l);

    if (result == 0)
        result = keepers_each(add_elsewhere, &l);
    if (l.count > 0)
        qsort(l.live, l.count, sizeof *l.live, by_mountpoint);
    for (size_t i = 0; result == 0 && i < l.count; i++)
        result = each(user, &l.live[i]);
    for (size_t i = 0; i < l.count; i++)
        live_fini(&l.live[i]);
    free(l.live);
    return result;
}

/* --- its end --- */

/* Keeper and server hold STATE/lock as long as they live. */
static bool lock_is_free(const struct live *live)
{
    CLEANUP_STR struct str path = STR_INIT;

    str_addf(&path, "%s/lock", live->config.state);
    CLEANUP_CLOSE int fd = path.failed ? -1 : open(path.data, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0;
}

int live_wait_gone(const struct live *live, unsigned seconds)
{
    enum { TICK_MS = 10 };
    uint64_t deadline = clock_now() + (uint64_t)seconds * 1000000000;
    CLEANUP_CLOSE int pidfd = live->keeper > 0 ? (int)syscall(SYS_pidfd_open, live->keeper, 0) : -1;
    struct pollfd end = {.fd = pidfd, .events = POLLIN};

    if (pidfd >= 0 && poll(&end, 1, (int)seconds * 1000) == 0)
        return -ETIMEDOUT;
    while (live->configured && !lock_is_free(live)) {
        if (clock_now() > deadline)
            return -ETIMEDOUT;
        nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000}, NULL);
    }
    return 0;
}
