/* The first steps of a mount: what can be known to fail before a long scan is found here. */
#include "cli/prepare.h"

#include "cli/command.h"
#include "cli/keepers.h"
#include "cli/live.h"
#include "cli/place.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/mount/attach.h"
#include "fs/mount/handover.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum { LOCK_WAIT_MS = 5000, TICK_MS = 10, END_SECONDS = 30 };
enum { LOG_MOST = 16 << 20, CONF_MOST = 1 << 20 };

/* --- check --- */

static int check_programs(struct str *why)
{
    static const char *const names[] = {"dealfs-keeper", "dealfs-server"};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (handover_find_program(names[i], path, sizeof path))
            return place_fail(why, "find", names[i], "neither beside dealfs nor in ../libexec/dealfs", -ENOENT);
    return 0;
}

static int check_device(struct str *why)
{
    if (!attach_privileged())
        return 0; /* fusermount3 opens it with rights that we do not have */
    CLEANUP_CLOSE int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fd >= 0)
        return 0;
    int error = -errno;
    bool absent = error == -ENOENT || error == -ENODEV || error == -ENXIO;
    str_addf(why, "open /dev/fuse: %s (%s)", strerror(-error),
             absent ? "load the fuse module; a container needs the device passed in"
                    : "this user may not open it: it wants mode 0666, and a container must allow the device");
    return error;
}

/* fusermount3's own rule, with its own words; it would say so after the scan. */
static int check_allow_other(const struct options *o, struct str *why)
{
    CLEANUP_STR struct str conf = STR_INIT;

    if (!o->allow_other || attach_privileged())
        return 0;
    int error = file_read(AT_FDCWD, "/etc/fuse.conf", CONF_MOST, &conf);
    if (error && error != -ENOENT)
        return 0;
    for (char *rest = conf.length ? conf.data : NULL, *line; (line = strsep(&rest, "\n"));)
        if (strncmp(line + strspn(line, " \t"), "user_allow_other", strlen("user_allow_other")) == 0)
            return 0;
    str_adds(why, "option allow_other: only allowed if 'user_allow_other' is set in /etc/fuse.conf");
    return -EPERM;
}

int prepare_check(struct start *s, struct str *why)
{
    int error = check_programs(why);
    if (!error)
        error = check_device(why);
    if (!error)
        error = check_allow_other(&s->options, why);
    return error ? error : tiers_check(&s->options, why);
}

/* --- places --- */

static int refuse_live(const struct live *live, struct str *why)
{
    CLEANUP_STR struct str reason = STR_INIT;

    if (live->health == LIVE_HUNG) {
        str_addf(&reason, "a dealfs mount of %s stands there and does not answer; `dealfs umount --lazy` takes it away",
                 live->source);
        return place_fail(why, "mountpoint", live->mountpoint, reason.data, -EBUSY);
    }
    str_add_printable(&reason, live->source, strlen(live->source));
    str_adds(&reason, " is mounted there already");
    return place_fail(why, "mountpoint", live->mountpoint, reason.data, -EBUSY);
}

/* A dead mount is replaced: nobody can do anything with it but leave. */
static int clear_mountpoint(struct start *s, struct str *why)
{
    CLEANUP_STR struct str nothing = STR_INIT;
    struct live live;

    int error = live_find(s->config.mountpoint, &live, &nothing);
    if (error == -ENOENT || (!error && live.health == LIVE_ELSEWHERE)) {
        if (!error)
            live_fini(&live);
        return 0;
    }
    if (error)
        return place_fail(why, "mountpoint", s->config.mountpoint, strerror(-error), error);
    if (live.health == LIVE_DEAD) {
        command_note(s->to, "%s: replacing a dead mount", live.mountpoint);
        error = attach_unmount(live.mountpoint, true, why);
        if (!error)
            live_wait_gone(&live, END_SECONDS);
    } else {
        error = refuse_live(&live, why);
    }
    live_fini(&live);
    return error;
}

static int look_at_mountpoint(struct start *s, struct str *why)
{
    bool empty;
    int error = clear_mountpoint(s, why);

    if (!error)
        error = place_look(s->config.mountpoint, &empty, why);
    if (!error)
        error = place_apart(s->config.source, s->config.mountpoint, why);
    if (!error && !attach_privileged() && faccessat(AT_FDCWD, s->config.mountpoint, W_OK, AT_EACCESS) < 0)
        error = place_fail(why, "mountpoint", s->config.mountpoint, "this user may not write there, nor mount on it", -EACCES);
    if (!error && !empty)
        command_note(s->to, "warning: %s is not empty: the mount hides what is in it", s->config.mountpoint);
    return error;
}

int prepare_names(struct start *s, struct str *why)
{
    CLEANUP_FREE char *mountpoint = place_absolute(s->mountpoint, s->options.node);
    struct mount_config *c = &s->config;

    if (!mountpoint)
        return -ENOMEM;
    if (!*s->source || !*s->mountpoint) {
        str_adds(why, *s->source ? "mountpoint: an empty name" : "source: an empty name");
        return -EINVAL;
    }
    int error = owner_find(s->options.owner, &s->owner, why);
    if (!error)
        error = owner_assume(&s->owner, why);
    if (error)
        return error;
    error = place_source(s->source, &c->source, why);
    if (!error) {
        s->source_fd = open(c->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        error = s->source_fd < 0 ? place_fail(why, "source", c->source, strerror(errno), -errno) : 0;
    }
    owner_leave(&s->owner);
    return error ? error : place_mountpoint(mountpoint, &c->mountpoint, why);
}

int prepare_places(struct start *s, struct str *why)
{
    int error = prepare_names(s, why);

    return error ? error : look_at_mountpoint(s, why);
}

/* --- state --- */

int prepare_state_name(struct start *s)
{
    const struct place_key key = start_key(s);
    CLEANUP_STR struct str path = STR_INIT;

    if (s->options.state)
        return start_keep(&s->config.state, place_absolute(s->options.state, s->options.node));
    CLEANUP_FREE char *parent = place_absolute(place_state_parent(), s->options.node);
    str_addf(&path, "%s/", parent ? parent : "");
    place_add_name(&path, &key);
    path.failed |= !parent;
    return start_keep(&s->config.state, str_steal(&path));
}

static int make_state(struct start *s, struct str *why)
{
    int error = prepare_state_name(s);

    if (error)
        return error;
    return place_folder("state directory", s->config.state, s->options.state ? "lock" : NULL, s->owner.uid, s->owner.gid,
                        &s->state_made, why);
}

static int say_locked(const struct start *s, struct str *why)
{
    CLEANUP_STR struct str reason = STR_INIT;
    pid_t keeper = keepers_of_state(s->config.state);

    str_addf(&reason, "is mounted on %s already", s->config.mountpoint);
    if (keeper)
        str_addf(&reason, " by process %d (dealfs-keeper), in another namespace or by another way to it", (int)keeper);
    else
        str_addf(&reason, ": somebody holds %s/lock", s->config.state);
    return place_fail(why, "source", s->config.source, reason.data, -EBUSY);
}

/* What is just ending is waited for. */
static int take_lock(struct start *s, struct str *why)
{
    CLEANUP_FREE char *path = place_join(s->config.state, "lock");

    if (!path)
        return -ENOMEM;
    s->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s->lock < 0)
        return place_fail(why, "open", path, strerror(errno), -errno);
    for (int waited = 0; flock(s->lock, LOCK_EX | LOCK_NB) < 0; waited += TICK_MS) {
        if (errno != EWOULDBLOCK)
            return place_fail(why, "lock", path, strerror(errno), -errno);
        if (waited >= LOCK_WAIT_MS || start_signal())
            return say_locked(s, why);
        nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000}, NULL);
    }
    return 0;
}

static int open_log(struct start *s, struct str *why)
{
    CLEANUP_FREE char *path = place_join(s->config.state, "log"), *old = place_join(s->config.state, "log.1");
    struct stat st;

    if (!path || !old)
        return -ENOMEM;
    if (stat(path, &st) == 0 && st.st_size > LOG_MOST)
        rename(path, old);
    s->log = s->foreground ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)
                           : open(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s->log < 0)
        return place_fail(why, "open", path, strerror(errno), -errno);
    s->log_before = lseek(s->log, 0, SEEK_END);
    return 0;
}

static int set_id(struct start *s, struct str *why)
{
    char id[DIGEST_TEXT];
    int error = place_id(s->config.state, id, why);

    return error ? error : start_keep(&s->config.id, strdup(id));
}

static int state_as_owner(struct start *s, struct str *why)
{
    int error = make_state(s, why);

    if (!error)
        error = take_lock(s, why);
    if (!error)
        error = set_id(s, why);
    return error ? error : open_log(s, why);
}

int prepare_state(struct start *s, struct str *why)
{
    int error = owner_assume(&s->owner, why);

    if (error)
        return error;
    error = state_as_owner(s, why);
    owner_leave(&s->owner);
    return error;
}
