/* The steps in order, and how they are undone. */
#include "cli/mount/start.h"

#include "cli/base/command.h"
#include "cli/base/interrupt.h"
#include "cli/base/memory.h"
#include "cli/base/place.h"
#include "cli/mount/keeper-start.h"
#include "cli/mount/split.h"
#include "cli/mount/survey.h"
#include "fs/attach/mounter.h"
#include "fs/attach/utab.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/size.h"
#include "fs/catalog/copy.h"

#include <fcntl.h>
#include <string.h>

static void say_lines(const struct start *s, const struct str *lines)
{
    for (const char *line = lines->length ? lines->data : ""; *line;) {
        size_t n = strcspn(line, "\n");
        command_note(s->to, "warning: %.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

/* --- scan --- */

static int survey_source(struct start *s, struct str *why)
{
    CLEANUP_FREE char *path = place_join(s->config.state, "catalog");
    struct survey survey = {
        .source = s->config.source,
        .path = path,
        .source_fd = s->source_fd,
        .scan = {.threads = s->options.source_threads,
                 .rescan = s->options.rescan,
                 .looked = s->options.looked,
                 .kept = s->options.ssd,
                 .acls = s->options.allow_other,
                 .ignore_ctime = s->options.identity_mtime},
        .to = s->to,
    };
    if (!path)
        return -ENOMEM;
    return s->options.part.count ? survey_part(&survey, s->options.part) : survey_run(&survey, &s->catalog, why);
}

static int step_scan(struct start *s, struct str *why)
{
    if (s->options.wait_join)
        return 0; /* the first world brings it */
    return s->options.catalog ? given_install(s, why) : survey_source(s, why);
}

/* From here on the mount uses its own copy: files in the state directory may change or disappear. */
static int copy_catalog(struct start *s)
{
    CLEANUP_CLOSE int from = -1;
    uint64_t bytes = s->catalog ? catalog_memory(s->catalog) : 0;
    int error = copy_make(s->state_fd, bytes, &s->copy);
    if (error || !s->catalog)
        return error; /* the first world brings it */
    from = openat(s->state_fd, "catalog", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    catalog_close(s->catalog);
    s->catalog = NULL;
    return from < 0 ? -errno : copy_fill(s->copy, from, bytes, &s->catalog);
}

static int step_copy(struct start *s, struct str *why)
{
    int error = copy_catalog(s);
    return place_error(why, "copy the catalog in", s->config.state, error);
}

/* --- tiers --- */

static int step_tiers(struct start *s, struct str *why)
{
    const struct folder_key key = prepare_key(s);
    struct mount_config *c = &s->config;
    struct tiers_wish wish = {
        .options = &s->options,
        .owner = &s->owner,
        .mounter = s->mounter,
        .key = &key,
        .number = folder_number(c->state) >= 0 ? folder_number(c->state) : s->slot,
        .own = s->slot >= 0,
        .files = s->catalog ? catalog_files(s->catalog) : 0,
        .bytes = s->catalog ? catalog_bytes(s->catalog) : TIERS_ANY,
        .beside = s->options.local,
    };
    int error = tiers_make(&wish, &s->tiers, why);
    if (error)
        return error;
    say_lines(s, &s->tiers.warning);
    c->ram_bytes = s->tiers.ram.bytes;
    c->ssd_bytes = s->tiers.ssd.bytes;
    if (s->tiers.ram.folder.path)
        error = str_keep(&c->ram_path, strdup(s->tiers.ram.folder.path));
    if (!error && s->tiers.ssd.folder.path)
        error = str_keep(&c->ssd_path, strdup(s->tiers.ssd.folder.path));
    return error;
}

/* --- digest --- */

static int step_digest(struct start *s, struct str *why)
{
    char found[DIGEST_TEXT];
    struct digest expected;
    const struct digest *digest = s->options.digest ? catalog_digest(s->catalog) : NULL;
    if (!digest || (digest_parse(s->options.digest, &expected) == 0 && memcmp(&expected, digest, sizeof expected) == 0))
        return 0;
    return str_fail(why, -ESTALE,
                    "the dataset has the digest %s, not the expected %s: files were added, removed or rewritten",
                    digest_format(digest, found), s->options.digest);
}

/* --- keeper --- */

/* The window's pages are charged to the control group of the feeder, like the RAM tier's and the server's memory. */
static uint64_t feed_room(const struct start *s)
{
    enum { SHARE = 16 };
    struct memory memory;
    uint64_t room = s->options.feed;
    if (room != UINT64_MAX || memory_look("", &memory))
        return room == UINT64_MAX ? FEED_DEFAULT : room;
    uint64_t ram = s->config.ram_bytes < memory.available ? s->config.ram_bytes : memory.available;
    room = (memory.available - ram) / SHARE;
    return room < FEED_DEFAULT ? room : FEED_DEFAULT;
}

static int fill_config(struct start *s)
{
    struct mount_config *c = &s->config;
    const struct mount_options *o = &s->options;
    CLEANUP_STR struct str identity = STR_INIT;
    if (attach_identify(s->source_fd, &identity) == 0 && str_keep(&c->source_identity, str_steal(&identity)))
        return -ENOMEM;
    c->nested = !o->control && (s->mounter >= 0 || attach_privileged());
    c->zstd_level = o->zstd_level;
    c->verify_once = o->verify_once;
    c->source_threads = o->source_threads;
    c->source_rate = o->source_rate;
    c->peer_timeout = o->peer_timeout;
    c->decoded = o->decoded;
    c->request_memory = o->request_memory;
    c->readahead = o->readahead;
    c->feed = c->foreign_pids ? 0 : feed_room(s);
    c->sampler_ranks = o->sampler && c->feed > 0 ? o->ranks : 0;
    c->sampler_batch = o->batch;
    c->sampler_seed = o->seed;
    c->sampler_drop = o->tail == SAMPLER_DROP;
    if (o->under && str_keep(&c->sampler_under, strdup(o->under)))
        return -ENOMEM;
    c->exchange = o->exchange;
    c->exchange_rate = o->exchange_rate;
    c->owner_uid = s->owner.uid;
    c->owner_gid = s->owner.gid;
    c->allow_other = o->allow_other;
    c->foreground = s->foreground;
    c->syslog = !s->foreground;
    c->wait_join = o->wait_join;
    c->rescan = (int)o->rescan;
    c->identity_mtime = o->identity_mtime;
    c->resize = o->resize;
    c->quality = o->resize ? options_quality(o) : 0;
    c->groups = (int)o->groups;
    if (o->mounter && str_keep(&c->mounter, place_absolute(o->mounter, o->node)))
        return -ENOMEM;
    return o->metrics_file ? str_keep(&c->metrics_file, place_absolute(o->metrics_file, o->node)) : 0;
}

/* For the mount's processes, for root's commands (through the mounter), and as a file for people. */
static int write_config(struct start *s, struct str *why)
{
    const struct mounter_request request = {.verb = MOUNTER_CONFIG};
    struct mounter_reply reply;
    int error = config_seal(&s->config, &s->config_fd);
    if (error)
        return place_error(why, "seal the configuration of", s->config.mountpoint, error);
    if (s->mounter >= 0)
        error = mounter_ask(s->mounter, &request, s->config_fd, &reply, NULL, why);
    return error ? error : place_error(why, "write the configuration in", s->config.state, config_write(&s->config));
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

/* From here on only the keeper has them, so that they end with it. */
static void let_go(struct start *s)
{
    int *const fds[] = {&s->data.device, &s->data.root,   &s->control.device, &s->control.root, &s->lock,
                        &s->state_fd,    &s->life_theirs, &s->source_fd,      &s->config_fd,    &s->copy,
                        &s->log,         &s->resized,     &s->mounter,        &s->turn};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        close_fd(fds[i]);
    tiers_let_go(&s->tiers);
}

/* The server's last error explains more than the fact that it died. */
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
    launch.fd[FD_DATA] = s->data.device;
    launch.fd[FD_CONTROL] = s->control.device;
    launch.fd[FD_DATA_MOUNT] = s->data.root;
    launch.fd[FD_CONTROL_MOUNT] = s->control.root;
    launch.fd[FD_CONFIG] = s->config_fd;
    launch.fd[FD_CATALOG] = s->copy;
    launch.fd[FD_RESIZED] = s->resized;
    launch.fd[FD_STATE] = s->state_fd;
    launch.fd[FD_LOCK] = s->lock;
    launch.fd[FD_LIFE] = s->life_theirs;
    launch.fd[FD_RAM] = s->tiers.ram.folder.lock;
    launch.fd[FD_SSD] = s->tiers.ssd.folder.lock;
    launch.fd[FD_SOURCE] = s->source_fd;
    launch.fd[FD_LOG] = s->log;
    launch.fd[FD_MOUNTER] = s->mounter;
    launch.state = s->config.state;
    launch.may_mount = s->namespaced;
    error = launch_keeper(&launch, &s->keeper, why);
    if (error)
        add_logged_error(s, why);
    return error;
}

/* --- finish --- */

static void say_tier(struct str *line, const char *name, const struct tier_made *tier)
{
    str_addf(line, ", %s %s", name, tier->bytes ? size_text(tier->bytes) : "none");
    if (tier->bytes && tier->reason.length)
        str_addf(line, " (%s)", tier->reason.data);
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
    say_tier(&line, "RAM", &s->tiers.ram);
    say_tier(&line, "SSD", &s->tiers.ssd);
    if (s->tiers.fits < 100 && s->config.ram_bytes + s->config.ssd_bytes > 0)
        str_addf(&line, "; about %u %% of the dataset fits", s->tiers.fits);
    if (!line.failed)
        command_note(s->to, "%s", line.data);
}

static int step_finish(struct start *s, struct str *why)
{
    (void)why;
    say_mounted(s);
    if (s->config.nested && !s->attached && s->mounter < 0) /* nobody unmounts a mount that ends with a command */
        utab_note(s->config.source, s->config.mountpoint);
    return 0;
}

/* --- undoing --- */

static void remove_made(struct start *s)
{
    tiers_undo(&s->tiers);
    if (s->control_made && s->config.control)
        rmdir(s->config.control);
    if (s->state_made)
        folder_discard(s->config.state, "lock");
}

static void take_back(struct start *s)
{
    mounts_take_away(s);
    close_fd(&s->life);
    let_go(s);
    mounts_await_end(s);
    remove_made(s);
}

/* For tests: DEALFS_START_FAULT=N kills the command after its Nth step, -N stops it there. */
static void fail_after(long step)
{
    const char *fault = getenv("DEALFS_START_FAULT");
    if (fault && labs(strtol(fault, NULL, 10)) == step)
        raise(*fault == '-' ? SIGSTOP : SIGKILL);
}

void start_init(struct start *s)
{
    *s = (struct start){.to = stdout};
    options_init(&s->options);
    s->slot = s->tiers.ram.folder.lock = s->tiers.ssd.folder.lock = s->life = s->lock = s->log = s->state_fd =
        s->source_fd = -1;
    s->config_fd = s->copy = s->resized = s->life_theirs = s->mounter = s->turn = -1;
    s->data = s->control = (struct attach_mount){.device = -1, .root = -1};
}

/* A reader of the messages who has gone must not end this process half way. Programs that it executes do not inherit a
 * handler. */
static void ignore_pipe(int number)
{
    (void)number;
}

int start_look(struct start *s, struct str *why)
{
    int error = prepare_owner(s, why);
    if (!error)
        error = prepare_names(s, why);
    if (!error)
        error = prepare_state_name(s, why);
    return error ? error : step_scan(s, why);
}

int start_mount(struct start *s, struct str *why)
{
    static int (*const steps[])(struct start *, struct str *) = {
        prepare_check, split_begin,   split_become, prepare_places, prepare_state, step_scan,   step_copy,
        step_tiers,    resize_source, step_digest,  mounts_put_up,  step_keeper,   step_finish,
    };
    int error = 0;
    interrupt_catch(SIGINT, SIGTERM, SIGHUP);
    signal(SIGPIPE, ignore_pipe);
    for (size_t i = 0; !error && i < sizeof steps / sizeof steps[0]; i++) {
        if (steps[i] == mounts_put_up)
            error = fill_config(s);
        if (!error)
            error = steps[i](s, why);
        if (!error)
            fail_after((long)i + 1);
        if (!error && interrupted)
            error = str_fail(why, -EINTR, "interrupted");
    }
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
    str_fini(&s->given);
}
