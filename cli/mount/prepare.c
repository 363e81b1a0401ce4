/* The first steps of a mount: finds errors that are known before a long scan. */
#include "cli/mount/steps.h"

#include "cli/base/command.h"
#include "cli/base/interrupt.h"
#include "cli/base/place.h"
#include "cli/live/keepers.h"
#include "cli/live/live.h"
#include "cli/mount/checks.h"
#include "cli/mount/folder.h"
#include "cli/mount/limits.h"
#include "cli/mount/split.h"
#include "fs/attach/attach.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { LOCK_WAIT_S = 5, TICK_MS = 10, END_SECONDS = 30 };
enum { LOG_MOST = 16 << 20, CONF_MOST = 1 << 20 };

/* --- check --- */

/* fusermount3's own rule, with its message; it would fail only after the scan. */
static int check_allow_other(const struct mount_options *o, struct str *why)
{
    CLEANUP_STR struct str conf = STR_INIT;
    if (!o->allow_other || o->mounter || o->mounter_fd || attach_privileged())
        return 0;
    int error = file_read(AT_FDCWD, "/etc/fuse.conf", CONF_MOST, &conf);
    if (error && error != -ENOENT)
        return 0;
    for (char *rest = conf.length ? conf.data : NULL, *line; (line = strsep(&rest, "\n"));)
        if (strncmp(line + strspn(line, " \t"), "user_allow_other", strlen("user_allow_other")) == 0)
            return 0;
    return str_fail(why, -EPERM, "option allow_other: only allowed if 'user_allow_other' is set in /etc/fuse.conf");
}

struct folder_key prepare_key(const struct start *s)
{
    return (struct folder_key){s->owner.name, place_host(), s->config.source, s->options.cache_id};
}

int prepare_owner(struct start *s, struct str *why)
{
    return s->owner.name ? 0 : owner_find(s->options.owner, &s->owner, why);
}

int prepare_check(struct start *s, struct str *why)
{
    int error = prepare_owner(s, why);
    if (!error)
        error = limits_raise(why);
    if (!error)
        error = s->options.mounter || s->options.mounter_fd ? 0 : checks_for_mount(why); /* with root's rights */
    return error ? error : check_allow_other(&s->options, why);
}

/* --- places --- */

static int refuse_live(const struct live *live, struct str *why)
{
    place_name(why, "mountpoint", live->mountpoint);
    if (live->health == LIVE_HUNG)
        return str_fail(why, -EBUSY,
                        "a dealfs mount of %s is there and does not answer: `dealfs umount --lazy` removes it",
                        live->source);
    str_add_printable(why, live->source, strlen(live->source));
    return str_fail(why, -EBUSY, " is already mounted there");
}

/* A dead mount is replaced: it is of no use to anybody. */
int prepare_clear(struct start *s, struct str *why)
{
    CLEANUP_STR struct str nothing = STR_INIT;
    CLEANUP_LIVE struct live live = {0};
    int error = live_find(s->config.mountpoint, &live, &nothing);
    if (error == -ENOENT || (!error && live.health == LIVE_ELSEWHERE))
        return 0;
    if (error == -ELOOP && s->owner.another) /* prepare_way rejects it, with USER's rights */
        return 0;
    if (error)
        return place_error(why, "mountpoint", s->config.mountpoint, error);
    if (s->owner.another && strcmp(live.mountpoint, s->config.mountpoint) != 0) /* a link led there */
        return 0;
    if (live.health == LIVE_DEAD) {
        command_note(s->to, "%s: replacing a dead mount", live.mountpoint);
        error = attach_unmount(live.mountpoint, live.minor, true, why);
        if (!error)
            live_wait_gone(&live, END_SECONDS);
    } else {
        error = refuse_live(&live, why);
    }
    return error;
}

/* The mounter mounts where root's command line says, not where a user's link leads. */
int prepare_way(const struct start *s, const char *what, const char *given, const char *real, struct str *why)
{
    CLEANUP_FREE char *path = place_absolute(given, s->options.node), *plain = path ? place_plain(path) : NULL;
    if (!plain)
        return -ENOMEM;
    if (s->mounter < 0 || strcmp(plain, real) == 0)
        return 0;
    place_name(why, what, plain);
    str_adds(why, "its path contains a symlink, which root does not follow for another user. Its real path is ");
    str_add_printable(why, real, strlen(real));
    return -EPERM;
}

/* An empty source over a directory with files is probably a mistake, or the source's own mount is missing. */
static int check_order(const struct start *s, struct str *why)
{
    CLEANUP_STR struct str ignored = STR_INIT;
    bool empty = false;
    if (place_look(s->config.source, &empty, &ignored) || !empty)
        return 0;
    place_name(why, "source", s->config.source);
    str_adds(why, "is empty, and would hide the files in the mountpoint ");
    str_add_printable(why, s->config.mountpoint, strlen(s->config.mountpoint));
    return str_fail(why, -EINVAL, ": is the source mounted, and are the two in the right order?");
}

int prepare_names(struct start *s, struct str *why)
{
    CLEANUP_FREE char *mountpoint = place_absolute(s->mountpoint, s->options.node);
    if (!mountpoint)
        return -ENOMEM;
    if (!*s->source || !*s->mountpoint)
        return str_fail(why, -EINVAL, "%s", *s->source ? "mountpoint: an empty name" : "source: an empty name");
    int error = place_source(s->source, &s->config.source, &s->source_fd, why);
    free(steal_pointer(s->config.mountpoint));
    if (!error)
        error = place_mountpoint(mountpoint, &s->config.mountpoint, why);
    return error ? error : tiers_check(&s->options, why);
}

int prepare_places(struct start *s, struct str *why)
{
    bool empty;
    int error = prepare_names(s, why);
    if (!error)
        error = prepare_clear(s, why);
    if (!error)
        error = place_look(s->config.mountpoint, &empty, why);
    if (!error)
        error = prepare_way(s, "mountpoint", s->mountpoint, s->config.mountpoint, why);
    if (!error)
        error = place_apart(s->config.source, s->config.mountpoint, why);
    if (!error && s->mounter < 0 && !attach_privileged() &&
        faccessat(AT_FDCWD, s->config.mountpoint, W_OK, AT_EACCESS) < 0)
        error = place_fail(why, "mountpoint", s->config.mountpoint,
                           "this user may not write there, and therefore not mount there", -EACCES);
    if (!error && !empty)
        error = check_order(s, why);
    if (!error && !empty)
        command_note(s->to, "warning: %s is not empty: the mount hides what is in it", s->config.mountpoint);
    return error;
}

/* --- state --- */

/* Was this state last used for this mountpoint? */
static bool was_here(const struct start *s, const char *state)
{
    CLEANUP_CONFIG struct mount_config config = {0};
    struct stat st;
    return lstat(state, &st) == 0 && st.st_uid == s->owner.uid && config_read(state, &config) == 0 &&
           strcmp(config.mountpoint, s->config.mountpoint) == 0;
}

/* Waits for a mount that is just ending. */
static int wait_for_lock(int fd)
{
    uint64_t until = clock_now() + clock_bound("DEALFS_STATE_PATIENCE", LOCK_WAIT_S);
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK || clock_now() >= until || interrupted)
            return -errno;
        clock_sleep(TICK_MS * MILLISECOND);
    }
    return 0;
}

/* A mount in another namespace, as made by `dealfs run`, is not about to end. */
static void await_end(const char *state)
{
    pid_t keeper = keepers_of_state(state);
    CLEANUP_CLOSE int folder = open(state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), lock = -1;
    if (keeper && !keepers_here(keeper))
        return;
    lock = folder < 0 ? -1 : folder_open_lock(folder, "lock");
    if (lock >= 0)
        wait_for_lock(lock);
}

/* The state of this source that was used for this mountpoint; -1: none, so use any free one. */
static int find_number(const struct start *s, const char *prefix)
{
    for (int i = 0; i < FOLDER_CLAIMS; i++) {
        CLEANUP_STR struct str path = STR_INIT;
        str_addf(&path, "%s.%d", prefix, i);
        if (path.failed || !was_here(s, path.data))
            continue;
        await_end(path.data);
        return i;
    }
    return -1;
}

static void note_if_new(struct start *s)
{
    CLEANUP_FREE char *id = place_join(s->config.state, "id");
    s->state_made = id && access(id, F_OK) < 0;
}

static int claim_state(struct start *s, struct str *why)
{
    const struct folder_key key = prepare_key(s);
    CLEANUP_STR struct str prefix = STR_INIT;
    CLEANUP_FREE char *parent = place_absolute(folder_state_parent(), s->options.node);
    struct folder_claim claim;
    str_addf(&prefix, "%s/", parent ? parent : "");
    folder_add_name(&prefix, &key);
    if (prefix.failed || !parent)
        return -ENOMEM;
    struct folder_wish wish = {
        .what = "state directory",
        .prefix = prefix.data,
        .lock = "lock",
        .number = find_number(s, prefix.data),
        .uid = s->owner.uid,
        .gid = s->owner.gid,
    };
    if (wish.number < 0) {
        wish.number = s->slot;
        wish.own = s->slot >= 0;
    }
    int error = folder_claim(&wish, &claim, why);
    if (error)
        return error;
    s->lock = claim.lock;
    str_keep(&s->config.state, claim.path);
    note_if_new(s);
    return 0;
}

static int say_locked(const struct start *s, struct str *why)
{
    pid_t keeper = keepers_of_state(s->config.state);
    place_name(why, "source", s->config.source);
    str_addf(why, "is already mounted on %s", s->config.mountpoint);
    if (keeper)
        str_addf(why, " by process %d (dealfs-keeper), in another namespace or under another path", (int)keeper);
    else
        str_addf(why, ": a process has locked %s/lock", s->config.state);
    return str_fail(why, -EBUSY, ": use another state=DIR to mount it twice");
}

/* Cleaners of temporary directories skip folders that are locked in this way (tmpfiles.d(5)). */
static int open_state(struct start *s, struct str *why)
{
    s->state_fd = open(s->config.state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (s->state_fd < 0)
        return place_error(why, "open", s->config.state, -errno);
    flock(s->state_fd, LOCK_SH | LOCK_NB);
    return 0;
}

static int take_lock(struct start *s, struct str *why)
{
    CLEANUP_CLOSE int folder = open(s->config.state, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    s->lock = folder < 0 ? -errno : folder_open_lock(folder, "lock");
    if (s->lock < 0)
        return place_error(why, "open the lock in", s->config.state, s->lock);
    int error = wait_for_lock(s->lock);
    if (error == -EWOULDBLOCK)
        return say_locked(s, why);
    return place_error(why, "lock", s->config.state, error);
}

/* The command that became our courier has claimed it, and passed the lock on. */
static int take_over_lock(struct start *s, struct str *why)
{
    CLEANUP_FREE char *path = place_join(s->config.state, "lock");
    struct stat given, named;
    if (!path)
        return -ENOMEM;
    if (fstat(s->options.lock, &given) < 0 || lstat(path, &named) < 0 || given.st_dev != named.st_dev ||
        given.st_ino != named.st_ino || flock(s->options.lock, LOCK_EX | LOCK_NB) < 0)
        return place_fail(why, "lock", path, "was replaced in the meantime", -EBUSY);
    s->lock = fcntl(s->options.lock, F_DUPFD_CLOEXEC, 3);
    close(s->options.lock);
    note_if_new(s);
    return s->lock < 0 ? -errno : 0;
}

static int make_state(struct start *s, struct str *why)
{
    const struct folder_wish wish = {
        .what = "state directory", .mark = "lock", .uid = s->owner.uid, .gid = s->owner.gid};
    if (!s->options.state)
        return claim_state(s, why);
    int error = str_keep(&s->config.state, place_absolute(s->options.state, s->options.node));
    if (!error && s->options.lock)
        return take_over_lock(s, why);
    if (!error)
        error = folder_make(&wish, s->config.state, &s->state_made, why);
    return error ? error : take_lock(s, why);
}

int prepare_state_name(struct start *s, struct str *why)
{
    if (s->options.state)
        return str_keep(&s->config.state, place_absolute(s->options.state, s->options.node));
    return claim_state(s, why);
}

static int open_log(struct start *s, struct str *why)
{
    CLEANUP_FREE char *path = place_join(s->config.state, "log"), *old = place_join(s->config.state, "log.1");
    struct stat st;
    if (!path || !old)
        return -ENOMEM;
    if (stat(path, &st) == 0 && st.st_size > LOG_MOST)
        rename(path, old);
    /* Root's terminal is not for the processes of another user. */
    bool to_stderr = s->foreground && (s->mounter < 0 || s->options.mounter);
    s->log = to_stderr ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)
                       : open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s->log < 0)
        return place_error(why, "open", path, -errno);
    if (!to_stderr && (fstat(s->log, &st) < 0 || !S_ISREG(st.st_mode))) /* a full pipe would block the keeper */
        return place_fail(why, "log", path, "is not a regular file", -EINVAL);
    s->log_before = lseek(s->log, 0, SEEK_END);
    return 0;
}

static int set_id(struct start *s, struct str *why)
{
    char id[DIGEST_TEXT];
    int error = folder_id(s->config.state, id, why);
    return error ? error : str_keep(&s->config.id, strdup(id));
}

int prepare_state(struct start *s, struct str *why)
{
    int error = make_state(s, why);
    if (!error)
        error = open_state(s, why);
    if (!error)
        error = set_id(s, why);
    return error ? error : open_log(s, why);
}
