/* The steps in their order, and the way back. */
#include "cli/start.h"

#include "cli/command.h"
#include "cli/guard.h"
#include "cli/keepers.h"
#include "cli/launch.h"
#include "cli/live.h"
#include "cli/place.h"
#include "cli/survey.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/size.h"
#include "fs/mount/attach.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum { NODE = 0, LOCK_WAIT_MS = 5000, TICK_MS = 10, END_SECONDS = 30, NEST_SECONDS = 60, READ_AHEAD_KB = 1024 };
enum { LOG_MOST = 16 << 20 };

static volatile sig_atomic_t stopped_by;

static void on_signal(int signal)
{
    stopped_by = signal;
}

int start_signal(void)
{
    return stopped_by;
}

static void catch_signals(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct sigaction before, ours = {.sa_handler = on_signal};
        /* Under nohup a hang-up is ignored, and stays so. */
        if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(ends[i], &ours, NULL);
    }
}

static int fail(struct str *why, const char *what, const char *path, const char *reason, int error)
{
    str_addf(why, "%s ", what);
    str_add_printable(why, path, strlen(path));
    str_addf(why, ": %s", reason);
    return error;
}

static int keep(char **to, char *value)
{
    *to = value;
    return value ? 0 : -ENOMEM;
}

static void say_lines(const struct start *s, const struct str *lines)
{
    for (const char *line = lines->length ? lines->data : ""; *line;) {
        size_t n = strcspn(line, "\n");
        command_note(s->to, "warning: %.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

/* --- check: what would fail for certain is found before a long scan --- */

static int check_programs(struct str *why)
{
    static const char *const names[] = {"dealfs-keeper", "dealfs-server"};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (handover_find_program(names[i], path, sizeof path))
            return fail(why, "find", names[i], "neither beside dealfs nor in ../libexec/dealfs", -ENOENT);
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

static int step_check(struct start *s, struct str *why)
{
    if (s->options.ssd_size && !s->options.ssd)
        return fail(why, "option", "ssd_size", "needs ssd=DIR", -EINVAL);
    int error = check_programs(why);
    return error ? error : check_device(why);
}

/* --- places --- */

static int refuse_live(const struct live *live, struct str *why)
{
    CLEANUP_STR struct str reason = STR_INIT;

    if (live->health == LIVE_HUNG) {
        str_addf(&reason, "a dealfs mount of %s stands there and does not answer; `dealfs umount --lazy` takes it away",
                 live->source);
        return fail(why, "mountpoint", live->mountpoint, reason.data, -EBUSY);
    }
    str_addf(&reason, "%s is mounted there already", live->source);
    return fail(why, "mountpoint", live->mountpoint, reason.data, -EBUSY);
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
        return fail(why, "mountpoint", s->config.mountpoint, strerror(-error), error);
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
    if (!error && !empty)
        command_note(s->to, "warning: %s is not empty: the mount hides what is in it", s->config.mountpoint);
    return error;
}

static int step_places(struct start *s, struct str *why)
{
    CLEANUP_FREE char *mountpoint = place_absolute(s->mountpoint, NODE);
    struct mount_config *c = &s->config;

    if (!mountpoint)
        return -ENOMEM;
    int error = owner_find(s->options.owner, &s->owner, why);
    if (!error)
        error = owner_assume(&s->owner, why);
    if (error)
        return error;
    error = place_source(s->source, &c->source, why);
    if (!error) {
        s->source_fd = open(c->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        error = s->source_fd < 0 ? fail(why, "source", c->source, strerror(errno), -errno) : 0;
    }
    owner_leave(&s->owner);
    if (!error)
        error = place_mountpoint(mountpoint, &c->mountpoint, why);
    return error ? error : look_at_mountpoint(s, why);
}

/* --- state --- */

static struct place_key key_of(const struct start *s)
{
    return (struct place_key){s->owner.name, place_host(), s->config.source, s->config.mountpoint};
}

static char *path_in(const char *folder, const char *name)
{
    CLEANUP_STR struct str path = STR_INIT;

    str_addf(&path, "%s/%s", folder, name);
    return path.failed ? NULL : str_steal(&path);
}

static int make_state(struct start *s, struct str *why)
{
    const struct place_key key = key_of(s);
    CLEANUP_STR struct str path = STR_INIT;
    char *state;

    if (s->options.state) {
        state = place_absolute(s->options.state, NODE);
    } else {
        CLEANUP_FREE char *parent = place_absolute(place_state_parent(), NODE);
        str_addf(&path, "%s/", parent ? parent : "");
        place_add_name(&path, &key);
        path.failed |= !parent;
        state = str_steal(&path);
    }
    int error = keep(&s->config.state, state);
    if (error)
        return error;
    return place_folder("state directory", state, s->options.state ? "lock" : NULL, s->owner.uid, s->owner.gid,
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
    return fail(why, "source", s->config.source, reason.data, -EBUSY);
}

/* What is just ending is waited for. */
static int take_lock(struct start *s, struct str *why)
{
    CLEANUP_FREE char *path = path_in(s->config.state, "lock");

    if (!path)
        return -ENOMEM;
    s->lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s->lock < 0)
        return fail(why, "open", path, strerror(errno), -errno);
    for (int waited = 0; flock(s->lock, LOCK_EX | LOCK_NB) < 0; waited += TICK_MS) {
        if (errno != EWOULDBLOCK)
            return fail(why, "lock", path, strerror(errno), -errno);
        if (waited >= LOCK_WAIT_MS || stopped_by)
            return say_locked(s, why);
        nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000}, NULL);
    }
    return 0;
}

static int open_log(struct start *s, struct str *why)
{
    CLEANUP_FREE char *path = path_in(s->config.state, "log"), *old = path_in(s->config.state, "log.1");
    struct stat st;

    if (!path || !old)
        return -ENOMEM;
    if (stat(path, &st) == 0 && st.st_size > LOG_MOST)
        rename(path, old);
    s->log = s->foreground ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)
                           : open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    return s->log < 0 ? fail(why, "open", path, strerror(errno), -errno) : 0;
}

static int set_id(struct start *s, struct str *why)
{
    char id[DIGEST_TEXT];
    int error = place_id(s->config.state, id, why);

    return error ? error : keep(&s->config.id, strdup(id));
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

static int step_state(struct start *s, struct str *why)
{
    int error = owner_assume(&s->owner, why);

    if (error)
        return error;
    error = state_as_owner(s, why);
    owner_leave(&s->owner);
    return error;
}

/* --- scan --- */

static int step_scan(struct start *s, struct str *why)
{
    CLEANUP_FREE char *path = path_in(s->config.state, "catalog");
    struct survey survey = {
        .source = s->config.source,
        .path = path,
        .source_fd = s->source_fd,
        .rescan = s->options.rescan,
        .stop = &stopped_by,
        .to = s->to,
    };

    if (!path)
        return -ENOMEM;
    int error = owner_assume(&s->owner, why);
    if (error)
        return error;
    error = survey_run(&survey, &s->catalog, why);
    owner_leave(&s->owner);
    return error;
}

/* --- tiers --- */

static int step_tiers(struct start *s, struct str *why)
{
    const struct place_key key = key_of(s);
    struct mount_config *c = &s->config;
    struct tiers_wish wish = {
        .options = &s->options,
        .owner = &s->owner,
        .key = &key,
        .files = catalog_files(s->catalog),
        .bytes = catalog_bytes(s->catalog),
        .mounts = keepers_count() + 1,
    };

    int error = tiers_make(&wish, &s->tiers, why);
    if (error)
        return error;
    say_lines(s, &s->tiers.warning);
    c->ram_bytes = s->tiers.ram_bytes;
    c->ssd_bytes = s->tiers.ssd_bytes;
    if (s->tiers.ram_path)
        error = keep(&c->ram_path, strdup(s->tiers.ram_path));
    if (!error && s->tiers.ssd_path)
        error = keep(&c->ssd_path, strdup(s->tiers.ssd_path));
    return error;
}

/* --- mounts --- */

static int make_control_place(struct start *s, struct str *why)
{
    struct mount_config *c = &s->config;
    struct attach_mount_info info;
    int error = keep(&c->control, s->options.control ? place_absolute(s->options.control, NODE)
                                                     : path_in(c->state, "control"));
    if (error)
        return error;
    if (attach_find(c->control, &info) == 0) {
        /* Our lock says that nobody serves it. */
        bool dead = strcmp(info.type, "fuse.dealfs-ctl") == 0;
        free(info.source);
        error = dead ? attach_unmount(c->control, true, why)
                     : fail(why, "control mount's place", c->control, "something is mounted there", -EBUSY);
        if (error)
            return error;
    }
    error = owner_assume(&s->owner, why);
    if (error)
        return error;
    error = place_folder("control mount's place", c->control, NULL, s->owner.uid, s->owner.gid, &s->control_made, why);
    owner_leave(&s->owner);
    return error;
}

static int attach(struct start *s, const char *path, bool data, int *fd, struct str *why)
{
    struct attach_options options = {
        .subtype = data ? "dealfs" : "dealfs-ctl",
        .source = s->config.source,
        .read_only = data,
        .allow_other = s->config.allow_other,
        .no_exec = s->options.no_exec || !data,
        /* Groups of the user that the namespace does not map would count for nothing. */
        .unchecked = data && s->namespaced && !s->config.allow_other,
        .uid = s->owner.uid,
        .gid = s->owner.gid,
    };

    return attach_mount(path, &options, fd, why);
}

/* The control mount first: until the data mount stands, nobody can come upon something that does not answer yet. */
static int step_mounts(struct start *s, struct str *why)
{
    int error = make_control_place(s, why);

    if (!error)
        error = attach(s, s->config.control, false, &s->control, why);
    return error ? error : attach(s, s->config.mountpoint, true, &s->data, why);
}

/* --- keeper --- */

static int fill_config(struct start *s)
{
    struct mount_config *c = &s->config;
    const struct options *o = &s->options;

    c->nested = !o->control && attach_privileged();
    c->zstd_level = o->zstd_level;
    c->source_threads = o->source_threads;
    c->peer_timeout = o->peer_timeout;
    c->owner_uid = s->owner.uid;
    c->owner_gid = s->owner.gid;
    c->allow_other = o->allow_other || s->owner.another;
    c->foreground = s->foreground;
    c->syslog = !s->foreground;
    return o->metrics_file ? keep(&c->metrics_file, place_absolute(o->metrics_file, NODE)) : 0;
}

static int write_config(struct start *s, struct str *why)
{
    int error = owner_assume(&s->owner, why);

    if (error)
        return error;
    error = config_write(&s->config);
    owner_leave(&s->owner);
    return error ? fail(why, "write the configuration in", s->config.state, strerror(-error), error) : 0;
}

static int make_life(struct start *s)
{
    int ends[2];

    if (!s->attached)
        return 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    s->life_theirs = ends[0];
    s->life = ends[1];
    return 0;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* From here on they are the keeper's alone: its end is theirs. */
static void let_go(struct start *s)
{
    int *const fds[] = {&s->data, &s->control, &s->lock, &s->life_theirs, &s->tiers.ram_fd, &s->source_fd, &s->log};

    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        close_fd(fds[i]);
}

static int step_keeper(struct start *s, struct str *why)
{
    struct launch launch;

    int error = write_config(s, why);
    if (!error)
        error = make_life(s);
    if (error)
        return error;
    launch_init(&launch);
    launch.fd[FD_DATA] = s->data;
    launch.fd[FD_CONTROL] = s->control;
    launch.fd[FD_LOCK] = s->lock;
    launch.fd[FD_LIFE] = s->life_theirs;
    launch.fd[FD_RAM] = s->tiers.ram_fd;
    launch.fd[FD_SOURCE] = s->source_fd;
    launch.fd[FD_LOG] = s->log;
    launch.state = s->config.state;
    launch.may_mount = s->namespaced;
    launch.stop = &stopped_by;
    return launch_keeper(&launch, &s->keeper, why);
}

/* --- finish --- */

static int nest(void *user, struct str *out)
{
    const struct mount_config *c = user;

    return attach_nest(c->control, c->mountpoint, out);
}

/* A 10 MiB file is then read in 1 MiB requests, not in 128 KiB ones. May be refused: it is only for speed. */
static void raise_read_ahead(const struct start *s)
{
    struct attach_mount_info info;
    char path[64], number[16];

    if (attach_find(s->config.mountpoint, &info))
        return;
    free(info.source);
    snprintf(path, sizeof path, "/sys/class/bdi/%u:%u/read_ahead_kb", info.major, info.minor);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    int n = snprintf(number, sizeof number, "%d\n", READ_AHEAD_KB);
    if (fd >= 0)
        file_write_all(fd, number, (size_t)n);
}

static void say_tier(struct str *line, const char *name, uint64_t bytes, const struct str *reason)
{
    char size[SIZE_TEXT];

    str_addf(line, ", %s %s", name, bytes ? size_format(bytes, size, sizeof size) : "none");
    if (bytes && reason->length)
        str_addf(line, " (%s)", reason->data);
}

static void say_mounted(const struct start *s)
{
    CLEANUP_STR struct str line = STR_INIT;

    str_add_printable(&line, s->config.source, strlen(s->config.source));
    str_adds(&line, " is mounted on ");
    str_add_printable(&line, s->config.mountpoint, strlen(s->config.mountpoint));
    str_adds(&line, ": 1 node");
    say_tier(&line, "RAM", s->config.ram_bytes, &s->tiers.ram_reason);
    say_tier(&line, "SSD", s->config.ssd_bytes, &s->tiers.ssd_reason);
    if (!line.failed)
        command_note(s->to, "%s", line.data);
}

static int step_finish(struct start *s, struct str *why)
{
    int error = s->config.nested ? guard_run(nest, &s->config, NEST_SECONDS, why) : 0;

    if (error == -ETIMEDOUT)
        str_addf(why, "%s/.dealfs: the new mount does not answer", s->config.mountpoint);
    if (error)
        return error;
    raise_read_ahead(s);
    say_mounted(s);
    return 0;
}

/* --- the way back --- */

static void unmount_ours(const char *path, int fd, bool launched)
{
    CLEANUP_STR struct str nothing = STR_INIT;
    struct attach_mount_info info;

    if ((fd < 0 && !launched) || attach_find(path, &info))
        return;
    bool ours = strncmp(info.type, "fuse.dealfs", strlen("fuse.dealfs")) == 0;
    free(info.source);
    if (ours)
        attach_unmount(path, true, &nothing);
}

/* The keeper sees that its mounts are gone, and ends by itself. */
static void await_end(struct start *s)
{
    struct live gone = {.keeper = s->keeper, .configured = true, .config = {.state = s->config.state}};

    if (s->keeper <= 0)
        return;
    for (int waited = 0; waitpid(s->keeper, NULL, WNOHANG) == 0 && waited < END_SECONDS * 1000; waited += TICK_MS)
        nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000}, NULL);
    gone.keeper = 0;
    live_wait_gone(&gone, END_SECONDS);
}

static void take_back(struct start *s)
{
    bool launched = s->keeper > 0;

    if (s->config.mountpoint)
        unmount_ours(s->config.mountpoint, s->data, launched);
    if (s->config.control)
        unmount_ours(s->config.control, s->control, launched);
    close_fd(&s->life);
    let_go(s);
    await_end(s);
    tiers_undo(&s->tiers);
    if (s->control_made)
        rmdir(s->config.control);
    if (s->state_made)
        dir_remove_tree(AT_FDCWD, s->config.state);
}

void start_init(struct start *s)
{
    *s = (struct start){.to = stdout};
    options_init(&s->options);
    s->tiers.ram_fd = s->life = s->lock = s->log = s->source_fd = s->data = s->control = s->life_theirs = -1;
}

int start_mount(struct start *s, struct str *why)
{
    static int (*const steps[])(struct start *, struct str *) = {
        step_check, step_places, step_state, step_scan, step_tiers, step_mounts, step_keeper, step_finish,
    };

    catch_signals();
    int error = 0;
    for (size_t i = 0; !error && i < sizeof steps / sizeof steps[0]; i++) {
        if (steps[i] == step_mounts)
            error = fill_config(s);
        if (!error)
            error = steps[i](s, why);
        if (!error && stopped_by) {
            str_adds(why, "interrupted");
            error = -EINTR;
        }
    }
    if (error && why->length == 0)
        str_adds(why, strerror(-error));
    if (error)
        take_back(s);
    else
        let_go(s);
    return error;
}

void start_fini(struct start *s)
{
    let_go(s);
    close_fd(&s->life);
    catalog_close(s->catalog);
    s->catalog = NULL;
    tiers_fini(&s->tiers);
    owner_fini(&s->owner);
    config_fini(&s->config);
    options_fini(&s->options);
}
