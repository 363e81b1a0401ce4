/* The two mounts of a start, and their removal when it fails. */
#include "cli/mount/steps.h"

#include "cli/base/place.h"
#include "cli/live/live.h"
#include "cli/mount/folder.h"
#include "fs/attach/attach.h"
#include "fs/attach/mounter.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { TICK_MS = 10, STOP_MS = 1000, END_SECONDS = 10 };

/* Left by an earlier mount: our lock shows that it is not served any more. */
static int clear_control_place(const char *path, struct str *why)
{
    struct attach_mount_info info;
    int error = attach_find(path, &info);
    if (error)
        return error == -ENOENT ? 0 : str_fail(why, error, "read the mount table: %s", strerror(-error));
    bool dead = strcmp(info.type, "fuse.dealfs-ctl") == 0;
    free(info.source);
    return dead ? attach_unmount(path, info.minor, true, why)
                : place_fail(why, "control mount's place", path, "another file system is mounted there", -EBUSY);
}

static int choose_users_place(struct start *s, struct str *why)
{
    CLEANUP_FREE char *path = place_absolute(s->options.control, s->options.node), *real = NULL;
    if (!path)
        return -ENOMEM;
    s->control_made = mkdir(path, 0755) == 0;
    int error = place_mountpoint(path, &real, why);
    if (!error)
        error = prepare_way(s, "option control", s->options.control, real, why);
    if (error)
        return error;
    str_keep(&s->config.control, steal_pointer(real));
    if (!place_lies_in(s->config.control, s->config.mountpoint))
        return 0;
    return place_fail(why, "option control", s->config.control, "is inside the mountpoint: the mount would hide it",
                      -EINVAL);
}

static int make_our_place(struct start *s, struct str *why)
{
    const struct folder_wish wish = {.what = "control mount's place", .uid = s->owner.uid, .gid = s->owner.gid};
    return folder_make(&wish, s->config.control, &s->control_made, why);
}

static int make_control_place(struct start *s, struct str *why)
{
    if (s->config.nested)
        return str_keep(&s->config.control, place_join(s->config.mountpoint, ".dealfs"));
    int error = s->options.control ? choose_users_place(s, why)
                                   : str_keep(&s->config.control, place_join(s->config.state, "control"));

    if (!error)
        error = clear_control_place(s->config.control, why);
    if (!error && !s->options.control)
        error = make_our_place(s, why);
    return error;
}

static int attach_one(struct start *s, const char *path, bool data, struct attach_mount *made, struct str *why)
{
    struct attach_options options = {
        .subtype = data ? "dealfs" : "dealfs-ctl",
        .source = s->config.source,
        .read_only = data,
        .allow_other = s->config.allow_other,
        .no_exec = s->options.no_exec || !data,
        /* without default_permissions, which would ignore groups of the user that the namespace does not map */
        .unchecked = data && s->namespaced && !s->config.allow_other,
        .uid = s->owner.uid,
        .gid = s->owner.gid,
    };
    return attach_mount(path, &options, made, why);
}

/* The control mount comes first: until the data mount is visible, no process can come across a mount that does not
 * answer yet. With privileges or a mounter, both are invisible until a server answers. */
static int attach_both(struct start *s, struct str *why)
{
    int error = attach_one(s, s->config.control, false, &s->control, why);
    return error ? error : attach_one(s, s->config.mountpoint, true, &s->data, why);
}

static int ask_for_both(struct start *s, struct str *why)
{
    struct mounter_request request = {.verb = MOUNTER_MAKE};
    struct mounter_reply reply;
    int device[MOUNTER_FDS];
    if ((size_t)snprintf(request.source, sizeof request.source, "%s", s->config.source) >= sizeof request.source)
        return place_error(why, "source", s->config.source, -ENAMETOOLONG);
    int error = mounter_ask(s->mounter, &request, -1, &reply, device, why);
    if (error)
        return error;
    s->data = (struct attach_mount){device[0], -1, reply.data_minor};
    s->control = (struct attach_mount){device[1], -1, reply.control_minor};
    return 0;
}

int mounts_put_up(struct start *s, struct str *why)
{
    int error = make_control_place(s, why);
    if (!error)
        error = s->mounter >= 0 ? ask_for_both(s, why) : attach_both(s, why);
    s->config.control_minor = s->control.minor;
    s->config.data_minor = s->data.minor;
    return error;
}

static void unmount_ours(const char *path, const struct attach_mount *made)
{
    CLEANUP_STR struct str nothing = STR_INIT;
    struct attach_mount_info info;
    if (made->device < 0 || attach_find(path, &info))
        return;
    bool ours = strncmp(info.type, "fuse.dealfs", strlen("fuse.dealfs")) == 0 && info.minor == made->minor;
    free(info.source);
    if (ours)
        attach_unmount(path, made->minor, true, &nothing);
}

void mounts_take_away(struct start *s)
{
    CLEANUP_STR struct str ignored = STR_INIT;
    if (s->mounter >= 0)
        mounter_do(s->mounter, MOUNTER_TAKE, TAKE_DATA | TAKE_CONTROL, &ignored);
    if (s->config.mountpoint)
        unmount_ours(s->config.mountpoint, &s->data);
    if (s->config.control)
        unmount_ours(s->config.control, &s->control);
}

/* A server that has not come up may be stuck in anything. Its keeper would start another one, and a standby would
 * replace a keeper that dies. So stop the keeper, kill its children, then the keeper. */
static void kill_all(pid_t keeper)
{
    CLEANUP_STR struct str children = STR_INIT;
    char path[64], *rest;
    pid_t seen = 0;
    int status;
    kill(keeper, SIGSTOP);
    for (int waited = 0; seen == 0 && waited < STOP_MS; waited += TICK_MS) {
        clock_sleep(TICK_MS * MILLISECOND);
        seen = waitpid(keeper, &status, WNOHANG | WUNTRACED);
    }
    if (seen == keeper && !WIFSTOPPED(status))
        return;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)keeper, (int)keeper);
    int error = file_read(AT_FDCWD, path, 4096, &children);
    rest = error || children.length == 0 ? NULL : children.data;
    for (char *word; (word = strsep(&rest, " "));)
        if (atoi(word) > 0)
            kill(atoi(word), SIGKILL);
    kill(keeper, SIGKILL);
}

static bool await_child(pid_t pid, int milliseconds)
{
    for (int waited = 0; waitpid(pid, NULL, WNOHANG) == 0; waited += TICK_MS) {
        if (waited >= milliseconds)
            return false;
        clock_sleep(TICK_MS * MILLISECOND);
    }
    return true;
}

/* The keeper notices that its mounts are gone, and ends by itself. */
void mounts_await_end(struct start *s)
{
    struct live gone = {.configured = true, .config = {.state = s->config.state}};
    if (s->keeper <= 0)
        return;
    if (!await_child(s->keeper, END_SECONDS * 1000)) {
        kill_all(s->keeper);
        await_child(s->keeper, END_SECONDS * 1000);
    }
    live_wait_gone(&gone, END_SECONDS);
}
