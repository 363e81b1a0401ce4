/* Combines the mount table with the list of keepers. */
#include "cli/live/live.h"

#include "cli/base/guard.h"
#include "cli/base/launcher.h"
#include "cli/base/place.h"
#include "cli/base/way.h"
#include "cli/live/keepers.h"
#include "fs/attach/attach.h"
#include "fs/attach/mount-health.h"
#include "fs/base/array.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/process.h"
#include "fs/wire/handover.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

uint64_t live_patience(void)
{
    enum { PROBE_S = 5 };
    return clock_bound("DEALFS_PROBE_PATIENCE", PROBE_S);
}

const char *live_health_text(enum live_health health)
{
    static const char *const texts[] = {[LIVE_UP] = "up",
                                        [LIVE_ELSEWHERE] = "in another namespace",
                                        [LIVE_UNKNOWN] = "cannot be asked now",
                                        [LIVE_HUNG] = "hangs",
                                        [LIVE_DEAD] = "dead"};
    return texts[health];
}

static bool is_stopped(pid_t id)
{
    struct process p = {0, -1, -1};
    bool stopped = process_watch(id, &p) == 0 && process_is_stopped(&p);
    process_forget(&p);
    return stopped;
}

void live_say_health(const struct live *live, struct str *out)
{
    str_adds(out, live_health_text(live->health));
    pid_t server =
        live->health == LIVE_HUNG && live->configured ? keepers_server(live->config.state, live->config.owner_uid) : 0;
    if (!is_stopped(server))
        return;
    str_addf(out, ": its server %d is stopped (by SIGSTOP or the like)", (int)server);
    if (is_stopped(live->keeper))
        str_addf(out, ", and so is its keeper: `kill -CONT %d %d` continues them", (int)live->keeper, (int)server);
    else
        str_addf(out, "; the keeper replaces it %d s after that, unless it continues", SERVER_PATIENCE_S);
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

struct keeper_search {
    struct live *live;
    const struct attach_mount_info *info; /* from the mount table; NULL: it is in another namespace, and ours */
    uint64_t deadline;                    /* for all processes of another user together */
};

/* Commands act on a configuration, so it must come from a process of the mount's owner and name that owner. */
static bool names_owner(const struct mount_config *c, const struct attach_mount_info *info)
{
    return info ? c->owner_uid == info->uid && c->owner_gid == info->gid : c->owner_uid == geteuid();
}

static int copy_config(void *user, struct str *out)
{
    return config_text_of(*(const pid_t *)user, out);
}

/* Of another user's process: read by a child, since reading may hang forever. */
static int read_anothers(pid_t process, uint64_t deadline, struct mount_config *config)
{
    CLEANUP_STR struct str text = STR_INIT;
    uint64_t now = clock_now();
    int error = now < deadline
                    ? guard_run(copy_config, &process, (unsigned)((deadline - now + SECOND - 1) / SECOND), &text)
                    : -ETIMEDOUT;
    return error ? error : config_parse(&text, config);
}

/* The caller frees the configuration, also after an error. */
static int read_keeper(const struct keeper_seen *keeper, const struct attach_mount_info *info, uint64_t deadline,
                       struct mount_config *config)
{
    if (keeper->uid != (info ? info->uid : geteuid()))
        return -EPERM;
    int error = keeper->uid == geteuid() ? config_of_keeper(keeper->pid, keeper->state, config)
                                         : read_anothers(keeper->pid, deadline, config);
    return error || names_owner(config, info) ? error : -EPERM;
}

/* The mounter has described the mount: nothing of its user need be read. */
static void match_known(struct live *live, const struct keeper_seen *keeper)
{
    if (keeper->uid == live->config.owner_uid && strcmp(keeper->state, live->config.state) == 0 &&
        !(live->keeper && keepers_here(live->keeper)))
        live->keeper = keeper->pid;
}

static void take_config(struct live *live, struct mount_config *config)
{
    config_fini(&live->config);
    live->config = *config;
    live->configured = true;
    *config = (struct mount_config){0};
}

/* The errors of a process that lacks something itself. A keeper whose configuration cannot be read for another reason
 * has ended, or is a process of somebody who only pretends. */
static bool is_lack(int error)
{
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EAGAIN;
}

static int match_keeper(void *user, const struct keeper_seen *keeper)
{
    struct keeper_search *s = user;
    CLEANUP_CONFIG struct mount_config config = {0};
    if (s->live->mounter) {
        match_known(s->live, keeper);
        return 0;
    }
    /* another namespace may have a mount of the same name; prefer ours */
    int error = read_keeper(keeper, s->info, s->deadline, &config);
    if (error || strcmp(config.mountpoint, s->live->mountpoint) != 0 ||
        (s->live->keeper && keepers_here(s->live->keeper)))
        return is_lack(error) ? error : 0;
    take_config(s->live, &config);
    s->live->keeper = keeper->pid;
    return 0;
}

static int match_mounter(void *user, const struct keeper_seen *mounter)
{
    struct keeper_search *s = user;
    CLEANUP_CONFIG struct mount_config config = {0};
    if (mounter->uid != 0 || strcmp(mounter->state, s->live->mountpoint) != 0 || !keepers_here(mounter->pid) ||
        config_of_keeper(mounter->pid, "", &config))
        return 0;
    if (!names_owner(&config, s->info) || config.data_minor != s->info->minor)
        return 0; /* an older one, of another mount */
    take_config(s->live, &config);
    s->live->mounter = mounter->pid;
    return 0;
}

/* --- does it answer? --- */

/* The root's attributes are cached forever, even when the server is gone, but statfs always asks the server. If this
 * user may not enter the mount, statfs returns nothing, and stat reports that. */
static int look_at_root(const char *path)
{
    struct statfs fs;
    struct stat st;
    if (statfs(path, &fs) < 0)
        return -errno;
    return stat(path, &st) < 0 ? -errno : 0;
}

/* Root may not enter another user's private mount: then this child becomes that user. */
static int ask_server(void *user, struct str *out)
{
    const struct live *live = user;
    int error = look_at_root(live->mountpoint);
    (void)out;
    if (error != -EACCES || geteuid() != 0 || process_become(live->uid, live->gid))
        return error;
    return look_at_root(live->mountpoint);
}

/* A user who may not look into a mount can still see whether its keeper lives. */
static enum live_health health_of(const struct live *live, int error)
{
    switch (mount_health_of(error)) {
    case MOUNT_ANSWERS:
        return LIVE_UP;
    case MOUNT_DENIED:
        return live->keeper ? LIVE_UP : LIVE_UNKNOWN;
    case MOUNT_UNKNOWN:
        break;
    case MOUNT_HANGS:
        return LIVE_HUNG;
    case MOUNT_DEAD:
        return LIVE_DEAD;
    }
    return LIVE_UNKNOWN;
}

/* All at the same time, because each of them may hang. */
static void probe_some(struct live *live, size_t count)
{
    CLEANUP_STR struct str nothing = STR_INIT;
    uint64_t deadline = clock_now() + live_patience();
    struct guard guard[LIVE_PROBES_MOST];
    int error[LIVE_PROBES_MOST];
    for (size_t i = 0; i < count; i++)
        error[i] = live[i].health == LIVE_ELSEWHERE ? -EEXIST : guard_start(ask_server, &live[i], &guard[i]);
    for (size_t i = 0; i < count; i++)
        if (error[i] != -EEXIST)
            live[i].health = health_of(&live[i], error[i] ? error[i] : guard_await(&guard[i], deadline, &nothing));
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

static int probe_all(struct live *live, size_t count)
{
    int error = 0;
    for (size_t i = 0; i < count; i += LIVE_PROBES_MOST)
        probe_some(live + i, count - i < LIVE_PROBES_MOST ? count - i : LIVE_PROBES_MOST);
    for (size_t i = 0; !error && i < count; i++)
        error = set_control(&live[i]);
    return error;
}

/* Owns `path`. probe_all follows. */
static int live_gather(struct live *live, char *path, const struct attach_mount_info *info, uint64_t deadline)
{
    struct keeper_search s = {.live = live, .info = info, .deadline = deadline};
    memset(live, 0, sizeof *live);
    live->mountpoint = path;
    int error = info && info->uid != 0 && geteuid() == 0 ? keepers_each_mounter(match_mounter, &s) : 0;
    if (!error)
        error = keepers_each(match_keeper, &s);
    if (error || (!info && (!live->keeper || keepers_here(live->keeper))))
        return error ? error : -ENOENT;
    live->source = strdup(info ? info->source : live->config.source);
    if (!live->source)
        return -ENOMEM;
    live->uid = info ? info->uid : live->config.owner_uid;
    live->gid = info ? info->gid : live->config.owner_gid;
    if (info) {
        live->major = info->major;
        live->minor = info->minor;
    }
    live->health = info ? LIVE_HUNG : LIVE_ELSEWHERE;
    return 0;
}

static int is_ours(const struct attach_mount_info *info)
{
    return strcmp(info->type, "fuse.dealfs") == 0;
}

/* Another user's link could make root unmount a mount that root did not name. */
static int find_path(const char *given, char **path, struct str *why)
{
    CLEANUP_FREE char *plain = place_as_given(given);
    if (!plain)
        return -ENOMEM;
    int error = geteuid() == 0 && *given ? way_resolve(plain, path, why) : place_mountpoint(given, path, why);
    if (error == -ENOENT || error == -EACCES) {
        /* a mount of another namespace may exist at a path that does not exist here */
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
    error = attach_find(path, &info);
    bool mounted = !error, ours = mounted && is_ours(&info);
    if (error && error != -ENOENT) {
        free(path);
        return str_fail(why, error, "read the mount table: %s", strerror(-error));
    }
    error = live_gather(live, path, ours ? &info : NULL, clock_now() + live_patience());
    if (!error)
        error = probe_all(live, 1);
    if (error) {
        str_add_printable(why, path, strlen(path));
        str_addf(why, ": %s",
                 error == -ENOENT ? mounted ? "the file system there is not dealfs" : "nothing is mounted there"
                                  : strerror(-error));
        live_fini(live);
    }
    free(info.source);
    return error;
}

/* With a launcher, each rank may get the same words, for example `dealfs umount /mnt/%r`. */
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

struct live_list {
    struct live *live;
    size_t count, room;
    bool mine_only;
    struct patience *patience;
    size_t users, users_room;
};

/* With all mounts of a user together, whose processes may be made to hang. */
struct patience {
    uid_t uid;
    uint64_t left; /* nanoseconds */
};

static struct patience *patience_with(struct live_list *l, uid_t uid)
{
    for (size_t i = 0; i < l->users; i++)
        if (l->patience[i].uid == uid)
            return &l->patience[i];
    if (array_reserve(l->patience, l->users_room, l->users + 1))
        return NULL;
    l->patience[l->users] = (struct patience){uid, LIVE_USER_SECONDS * SECOND};
    return &l->patience[l->users++];
}

static int list_gather(struct live_list *l, const char *path, const struct attach_mount_info *info)
{
    char *copy = strdup(path);
    struct patience *patience = patience_with(l, info ? info->uid : geteuid());
    uint64_t began = clock_now(), most = live_patience(), took;
    if (!copy || !patience || array_reserve(l->live, l->room, l->count + 1)) {
        free(copy);
        return -ENOMEM;
    }
    int error = live_gather(&l->live[l->count], copy, info, began + (patience->left < most ? patience->left : most));
    took = clock_now() - began;
    patience->left -= took < patience->left ? took : patience->left;
    if (error)
        live_fini(&l->live[l->count]);
    else
        l->count++;
    return error == -ENOENT ? 0 : error;
}

static bool list_has(const struct live_list *l, const char *path)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->live[i].mountpoint, path) == 0)
            return true;
    return false;
}

static int add_mounted(void *user, const char *path, const struct attach_mount_info *info)
{
    struct live_list *l = user;
    if ((l->mine_only && info->uid != geteuid()) || list_has(l, path))
        return 0;
    return list_gather(l, path, info);
}

static int add_elsewhere(void *user, const struct keeper_seen *keeper)
{
    struct live_list *l = user;
    CLEANUP_CONFIG struct mount_config config = {0};
    if (read_keeper(keeper, NULL, 0, &config) || (l->mine_only && config.owner_uid != geteuid()) ||
        list_has(l, config.mountpoint))
        return 0;
    return list_gather(l, config.mountpoint, NULL);
}

static int by_mountpoint(const void *a, const void *b)
{
    return strcmp(((const struct live *)a)->mountpoint, ((const struct live *)b)->mountpoint);
}

int live_list(struct live **list, size_t *count)
{
    struct live_list l = {.mine_only = geteuid() != 0};
    int error = attach_each("fuse.dealfs", add_mounted, &l);
    if (!error)
        error = keepers_each(add_elsewhere, &l);
    if (l.count > 0)
        qsort(l.live, l.count, sizeof *l.live, by_mountpoint);
    if (!error)
        error = probe_all(l.live, l.count);
    free(l.patience);
    if (error) {
        live_list_free(l.live, l.count);
        return error;
    }
    *list = l.live;
    *count = l.count;
    return 0;
}

void live_list_free(struct live *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        live_fini(&list[i]);
    free(list);
}

int live_each(int (*each)(void *user, const struct live *live), void *user)
{
    struct live *list;
    size_t count;
    int result = live_list(&list, &count);
    if (result)
        return result;
    for (size_t i = 0; result == 0 && i < count; i++)
        result = each(user, &list[i]);
    live_list_free(list, count);
    return result;
}
