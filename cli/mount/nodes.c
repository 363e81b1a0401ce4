/* The courier is a separate program, so that MPI is needed only to join a world. It gets a command line that prepares
 * this node. If nothing is mounted, that is `dealfs mount`; the courier adds -o catalog=FILE if another node already
 * has the catalog. For mounts that wait for their first world, it is `dealfs scan`, to which the courier adds the name
 * of a file. */
#include "cli/mount/nodes.h"

#include "cli/base/child.h"
#include "cli/base/command.h"
#include "cli/base/place.h"
#include "cli/live/live.h"
#include "cli/mount/split.h"
#include "cli/mount/steps.h"
#include "fs/base/cleanup.h"
#include "fs/wire/handover.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

/* --- a command line --- */

/* Words, each with a NUL. */
static void line_add(struct str *line, const char *word)
{
    str_add(line, word, strlen(word) + 1);
}

static void line_option(struct str *line, const char *name, uint64_t number)
{
    line_add(line, name);
    str_addf(line, "%" PRIu64, number);
    str_add(line, "", 1);
}

/* --- the courier --- */

struct task {
    const char *state, *mountpoint;
    int lock;    /* of `state`, for the mount; -1: the mount takes it */
    int mounter; /* a socket of dealfs-mounter; -1: none */
    uid_t uid;   /* root's courier becomes this user; 0: it stays root */
    gid_t gid;
    unsigned nodes, groups;
    uint64_t timeout;
    int resize, quality; /* 0: unchanged */
    bool mount;
    bool acls; /* the mount needs a catalog that respects ACLs */
};

static int find_courier(char path[PATH_MAX], struct str *why)
{
    int error = handover_find_program("dealfs-courier", path, PATH_MAX);
    if (error)
        str_adds(why, "find dealfs-courier: neither beside dealfs nor in ../libexec/dealfs: this dealfs was built "
                      "without Open MPI, and can mount on one node only");
    return error;
}

static void begin_line(struct str *l, const struct task *t)
{
    line_add(l, "dealfs-courier");
    line_add(l, "--state");
    line_add(l, t->state);
    line_add(l, "--mountpoint");
    line_add(l, t->mountpoint);
    line_option(l, "--nodes", t->nodes);
    line_option(l, "--groups", t->groups);
    line_option(l, "--timeout", t->timeout);
    if (t->resize) {
        line_option(l, "--resize", (uint64_t)t->resize);
        line_option(l, "--quality", (uint64_t)t->quality);
    }
    if (t->lock >= 0)
        line_option(l, "--lock", (uint64_t)t->lock);
    if (t->mounter >= 0)
        line_option(l, "--mounter", (uint64_t)t->mounter);
    if (geteuid() == 0 && t->uid != 0) {
        line_option(l, "--uid", t->uid);
        line_option(l, "--gid", t->gid);
    }
    if (t->acls)
        line_add(l, "--acls");
    line_add(l, t->mount ? "--mount" : "--scan");
    line_add(l, "--");
}

/* This program's current name. */
static void add_self(struct str *l)
{
    char path[PATH_MAX];
    child_self(path);
    line_add(l, path[0] ? path : "dealfs");
}

static int become_courier(const struct str *l, const char *courier, struct str *why)
{
    /* each word has at least its NUL, so there is room for all words and the final NULL */
    CLEANUP_FREE char **words = l->failed ? NULL : calloc(l->length, sizeof *words);
    size_t count = 0;
    if (!words)
        return -ENOMEM;
    for (char *word = l->data; word < l->data + l->length; word += strlen(word) + 1)
        words[count++] = word;
    fflush(NULL);
    execv(courier, words);
    return place_error(why, "start", courier, -errno);
}

static int check_launcher(const struct launcher *l, const char *command, unsigned nodes, struct str *why)
{
    if (l->deaf) {
        launcher_say_deaf(l, command, why);
        return -ENOSYS;
    }
    if (nodes && l->size && l->size != nodes)
        return str_fail(why, -EINVAL, "%s: the world must have %u nodes, but %s has started %u", command, nodes,
                        l->name, l->size);
    return 0;
}

/* --- join --- */

/* A mount that waits for its first world may not answer yet. */
static int check_live(const struct live *live, struct str *why)
{
    bool waits = live->health == LIVE_HUNG && live->configured && live->config.wait_join;
    if (live->configured && (live->health == LIVE_UP || waits))
        return 0;
    if (live->health == LIVE_ELSEWHERE)
        return place_fail(why, "join", live->mountpoint,
                          "it is in a namespace of `dealfs run`, and cannot join other nodes", -EINVAL);
    return place_fail(why, "join", live->mountpoint,
                      live->configured ? live_health_text(live->health) : "it is dead, or belongs to another user",
                      -ENOTCONN);
}

static int join_live(const struct live *live, const struct world_wish *wish, struct str *why)
{
    CLEANUP_STR struct str line = STR_INIT;
    const struct mount_config *c = &live->config;
    const struct task task = {
        .state = c->state,
        .mountpoint = live->mountpoint,
        .nodes = wish->nodes,
        .groups = wish->groups ? wish->groups : (unsigned)c->groups,
        .timeout = c->peer_timeout,
        .lock = -1,
        .mounter = -1,
        .uid = c->owner_uid,
        .gid = c->owner_gid,
    };
    char courier[PATH_MAX];
    int error = find_courier(courier, why);
    if (error)
        return error;
    begin_line(&line, &task);
    add_self(&line);
    line_add(&line, "scan");
    line_add(&line, c->state);
    return become_courier(&line, courier, why);
}

int world_join(const char *mountpoint, const struct launcher *launcher, const struct world_wish *wish, struct str *why)
{
    CLEANUP_FREE char *path = place_absolute(mountpoint, launcher->rank);
    CLEANUP_LIVE struct live live = {0};
    if (!path)
        return -ENOMEM;
    int error = check_launcher(launcher, "join", wish->nodes, why);
    if (!error)
        error = live_find(path, &live, why);
    if (error)
        return error;
    error = check_live(&live, why);
    return error ? error : join_live(&live, wish, why);
}

/* --- mount --- */

static void add_path(struct str *l, const char *path, bool in_list)
{
    place_escape(path, in_list, l);
    str_add(l, "", 1);
}

/* The command line for each node's courier: this mount with its given options, and what was prepared here. */
static void add_mount(struct str *line, const struct start *s, const struct task *task)
{
    add_self(line);
    line_add(line, "mount");
    if (s->given.length > 0) {
        line_add(line, "-o");
        line_add(line, s->given.data);
    }
    if (task->lock >= 0) {
        line_add(line, "-o");
        str_adds(line, "state=");
        add_path(line, task->state, true);
    }
    if (task->mounter >= 0 && s->options.ssd) { /* it may be the one that was created for the owner */
        CLEANUP_FREE char *ssd = place_absolute(s->options.ssd, s->options.node);
        line_add(line, "-o");
        str_adds(line, "ssd=");
        add_path(line, ssd ? ssd : "", true);
    }
}

static int mount_new(struct start *s, const struct launcher *launcher, struct str *why)
{
    CLEANUP_STR struct str line = STR_INIT;
    struct task task = {
        .nodes = s->options.nodes,
        .groups = s->options.groups,
        .timeout = s->options.peer_timeout,
        .resize = s->options.resize,
        .quality = s->options.resize ? options_quality(&s->options) : 0,
        .uid = s->owner.uid,
        .gid = s->owner.gid,
        .mount = true,
    };
    char courier[PATH_MAX];
    int error = find_courier(courier, why);
    if (!error)
        error = prepare_check(s, why);
    if (!error)
        error = split_begin(s, why);
    if (!error)
        error = split_prepare(s, prepare_state_name, why);
    if (error)
        return error;
    task.state = s->config.state;
    task.mountpoint = s->config.mountpoint;
    task.acls = s->options.allow_other;
    task.lock = s->lock >= 0 ? fcntl(s->lock, F_DUPFD, 3) : -1;
    task.mounter = s->mounter >= 0 ? fcntl(s->mounter, F_DUPFD, 3) : -1;
    begin_line(&line, &task);
    add_mount(&line, s, &task);
    line_add(&line, "-o");
    str_addf(&line, "node=%u/%u", launcher->rank, launcher->local);
    str_add(&line, "", 1);
    line_add(&line, s->config.source);
    add_path(&line, s->config.mountpoint, false);
    return become_courier(&line, courier, why);
}

static int say_other(const struct live *live, struct str *why)
{
    place_name(why, "mountpoint", live->mountpoint);
    str_add_printable(why, live->config.source, strlen(live->config.source));
    return str_fail(why, -EBUSY, " is mounted there, not this source");
}

static int say_images(const struct live *live, struct str *why)
{
    place_name(why, "mountpoint", live->mountpoint);
    if (!live->config.resize)
        return str_fail(why, -EBUSY, "it is mounted there without resize=");
    return str_fail(why, -EBUSY, "it is mounted there with resize=%d,quality=%d", live->config.resize,
                    live->config.quality);
}

static bool has_other_images(const struct live *live, const struct mount_options *o)
{
    return live->config.resize != o->resize || (o->resize && live->config.quality != options_quality(o));
}

static int mount_or_join(struct start *s, const struct launcher *launcher, struct str *why)
{
    const struct world_wish wish = {s->options.nodes, s->options.groups};
    CLEANUP_STR struct str nothing = STR_INIT;
    CLEANUP_LIVE struct live live = {0};
    int error = live_find(s->config.mountpoint, &live, &nothing);
    if (error && error != -ENOENT)
        return place_error(why, "mountpoint", s->config.mountpoint, error);
    if (error || live.health == LIVE_DEAD || live.health == LIVE_ELSEWHERE)
        return mount_new(s, launcher, why);
    error = check_live(&live, why);
    if (!error && live.uid != s->owner.uid)
        error = place_fail(why, "mountpoint", live.mountpoint,
                           "it is the mount of another user: choose another mountpoint", -EBUSY);
    if (!error && strcmp(live.config.source, s->config.source) != 0)
        error = say_other(&live, why);
    if (!error && has_other_images(&live, &s->options))
        error = say_images(&live, why);
    return error ? error : join_live(&live, &wish, why);
}

int world_mount(struct start *s, const struct launcher *launcher, struct str *why)
{
    int error = check_launcher(launcher, "mount", s->options.nodes, why);
    s->options.node = launcher->rank;
    s->slot = launcher->slot;
    if (!error)
        error = prepare_owner(s, why);
    if (!error)
        error = split_prepare(s, prepare_names, why);
    return error ? error : mount_or_join(s, launcher, why);
}
