/* The steps in their order, and the way back. */
#include "cli/start.h"

#include "cli/command.h"
#include "cli/given.h"
#include "cli/guard.h"
#include "cli/keepers.h"
#include "cli/launch.h"
#include "cli/mounts.h"
#include "cli/place.h"
#include "cli/prepare.h"
#include "cli/survey.h"
#include "cli/utab.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/size.h"
#include "fs/mount/attach.h"

#include <fcntl.h>
#include <string.h>

enum { NEST_SECONDS = 60, READ_AHEAD_KB = 1024 };

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

int start_keep(char **to, char *value)
{
    free(*to);
    *to = value;
    return value ? 0 : -ENOMEM;
}

struct place_key start_key(const struct start *s)
{
    return (struct place_key){s->owner.name, place_host(), s->config.source, s->config.mountpoint};
}

static void say_lines(const struct start *s, const struct str *lines)
{
    for (const char *line = lines->length ? lines->data : ""; *line;) {
        size_t n = strcspn(line, "\n");
        command_note(s->to, "warning: %.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

/* --- scan --- */

static int make_catalog(struct start *s, const char *path, struct str *why)
{
    struct survey survey = {
        .source = s->config.source,
        .path = path,
        .source_fd = s->source_fd,
        .rescan = s->options.rescan,
        .stop = &stopped_by,
        .to = s->to,
    };

    int error = owner_assume(&s->owner, why);
    if (error)
        return error;
    error = survey_run(&survey, &s->catalog, why);
    owner_leave(&s->owner);
    return error;
}

static int step_scan(struct start *s, struct str *why)
{
    CLEANUP_FREE char *path = place_join(s->config.state, "catalog");

    if (!path)
        return -ENOMEM;
    if (s->options.wait_join)
        return 0; /* the first world brings it */
    return s->options.catalog ? given_install(s, path, why) : make_catalog(s, path, why);
}

/* --- tiers --- */

static int step_tiers(struct start *s, struct str *why)
{
    const struct place_key key = start_key(s);
    struct mount_config *c = &s->config;
    struct tiers_wish wish = {
        .options = &s->options,
        .owner = &s->owner,
        .key = &key,
        .files = s->catalog ? catalog_files(s->catalog) : 0,
        .bytes = s->catalog ? catalog_bytes(s->catalog) : TIERS_ANY,
        .mounts = keepers_count() + 1,
    };

    /* Those that come up beside this one may have no keeper yet. */
    if (wish.mounts < s->options.local)
        wish.mounts = s->options.local;

    int error = tiers_make(&wish, &s->tiers, why);
    if (error)
        return error;
    say_lines(s, &s->tiers.warning);
    c->ram_bytes = s->tiers.ram_bytes;
    c->ssd_bytes = s->tiers.ssd_bytes;
    if (s->tiers.ram_path)
        error = start_keep(&c->ram_path, strdup(s->tiers.ram_path));
    if (!error && s->tiers.ssd_path)
        error = start_keep(&c->ssd_path, strdup(s->tiers.ssd_path));
    return error;
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
    c->wait_join = o->wait_join;
    c->rescan = (int)o->rescan;
    c->groups = (int)o->groups;
    return o->metrics_file ? start_keep(&c->metrics_file, place_absolute(o->metrics_file, o->node)) : 0;
}

static int write_config(struct start *s, struct str *why)
{
    int error = owner_assume(&s->owner, why);

    if (error)
        return error;
    error = config_write(&s->config);
    owner_leave(&s->owner);
    return error ? place_fail(why, "write the configuration in", s->config.state, strerror(-error), error) : 0;
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

/* What a server said before it died tells more than that it did. */
static void add_logged_error(const struct start *s, struct str *why)
{
    CLEANUP_STR struct str said = STR_INIT;
    static const char mark[] = " error dealfs-server: ";
    char *end;

    if (s->foreground || s->log < 0 || lseek(s->log, s->log_before, SEEK_SET) < 0 ||
        file_read_fd(s->log, 1 << 20, &said) || said.length == 0)
        return;
    char *first = strstr(said.data, mark);
    if (!first)
        return;
    first += strlen(mark);
    if ((end = strchr(first, '\n')))
        *end = '\0';
    str_addf(why, " (%s)", first);
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
    error = launch_keeper(&launch, &s->keeper, why);
    if (error)
        add_logged_error(s, why);
    return error;
}

/* --- finish --- */

static int nest(void *user, struct str *out)
{
    const struct start *s = user;
    const struct mount_config *c = &s->config;
    int error = attach_nest(c->control, c->mountpoint, out);

    if (!error && !s->attached) /* nobody unmounts what ends with a command */
        utab_note(c->source, c->mountpoint);
    return error;
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
    if (s->options.local)
        str_addf(&line, ": node %u", s->options.node);
    else
        str_adds(&line, s->options.wait_join ? ": waits for its first `dealfs join`" : ": 1 node");
    say_tier(&line, "RAM", s->config.ram_bytes, &s->tiers.ram_reason);
    say_tier(&line, "SSD", s->config.ssd_bytes, &s->tiers.ssd_reason);
    if (!line.failed)
        command_note(s->to, "%s", line.data);
}

static int step_finish(struct start *s, struct str *why)
{
    int error = s->config.nested ? guard_run(nest, s, NEST_SECONDS, why) : 0;

    if (error == -ETIMEDOUT)
        str_addf(why, "%s/.dealfs: the new mount does not answer", s->config.mountpoint);
    if (error)
        return error;
    raise_read_ahead(s);
    say_mounted(s);
    return 0;
}

/* --- the way back --- */

static void take_back(struct start *s)
{
    mounts_take_away(s);
    close_fd(&s->life);
    let_go(s);
    mounts_await_end(s);
    tiers_undo(&s->tiers);
    if (s->control_made && s->config.control)
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
        prepare_check, prepare_places, prepare_state, step_scan, step_tiers, mounts_put_up, step_keeper, step_finish,
    };

    catch_signals();
    int error = 0;
    for (size_t i = 0; !error && i < sizeof steps / sizeof steps[0]; i++) {
        if (steps[i] == mounts_put_up)
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
