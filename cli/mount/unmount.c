/* The nested control mount prevents unmounting the data mount, but must return if the data mount turns out to be
 * busy. So a detached copy of it is kept, which no process can be in:
 *
 *   copy MOUNTPOINT/.dealfs ─▶ unmount .dealfs ─▶ unmount MOUNTPOINT ─▶ drop the copy
 *                 ▲                                      │ busy
 *                 └──────────── nest the copy ◀──────────┘
 *
 * Root may unmount what another user owns; that user's claims about mounts are used only if the mount table
 * confirms them. */
#include "cli/mount/unmount.h"

#include "cli/base/guard.h"
#include "cli/live/keepers.h"
#include "cli/live/users.h"
#include "fs/attach/attach.h"
#include "fs/attach/utab.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/process.h"

#include <signal.h>
#include <string.h>

enum { STEP_SECONDS = 20, INSIDE_SECONDS = 1, HELPED_SECONDS = 10, BUSY_MS = 1000, AGAIN_MS = 20 };
static const char DATA[] = "fuse.dealfs", CONTROL[] = "fuse.dealfs-ctl";

struct unmount_work {
    const struct live *live;
    uid_t uid; /* user of the mount */
    gid_t gid;
    char nested[4096 + 16]; /* MOUNTPOINT/.dealfs; "": none of our mounts is there */
    bool lazy;
};

/* The minor number of our mount on a path, if it belongs to the same user as the mount to be removed; 0: none. */
static int find_on(const struct unmount_work *w, const char *path, const char *type, unsigned *minor)
{
    struct attach_mount_info info;
    int error = attach_find(path, &info);
    *minor = 0;
    if (error)
        return error == -ENOENT ? 0 : error;
    if (strcmp(info.type, type) == 0 && info.uid == w->uid)
        *minor = info.minor;
    free(info.source);
    return 0;
}

/* If the keeper has removed it meanwhile, that counts as success. */
static int take_mount(const struct unmount_work *w, const char *path, const char *type, bool lazy, struct str *why)
{
    unsigned minor;
    int error = find_on(w, path, type, &minor);
    if (!error && minor)
        error = attach_unmount(path, minor, lazy, why);
    if (!error || find_on(w, path, type, &minor) || minor)
        return error;
    str_clear(why);
    return 0;
}

static int take_data(const struct unmount_work *w, struct str *why)
{
    return take_mount(w, w->live->mountpoint, DATA, w->lazy, why);
}

/* Unmount the control mount if it is not inside the data mount. */
static int take_aside(const struct unmount_work *w, struct str *why)
{
    const struct live *live = w->live;
    return live->configured && live->config.control ? take_mount(w, live->config.control, CONTROL, true, why) : 0;
}

static void nest_again(const struct unmount_work *w, int copy)
{
    CLEANUP_STR struct str ignored = STR_INIT;
    CLEANUP_CLOSE int data = attach_open(w->live->mountpoint, w->live->minor, &ignored);
    if (data >= 0)
        attach_nest(copy, data, &ignored);
}

static int take_nested(const struct unmount_work *w, struct str *why)
{
    unsigned minor;
    int error = find_on(w, w->nested, CONTROL, &minor);
    CLEANUP_CLOSE int copy = error ? error : attach_copy(w->nested, minor, why);
    error = copy < 0 ? copy : attach_unmount(w->nested, minor, false, why);
    if (error)
        return error;
    error = take_data(w, why);
    if (error)
        nest_again(w, copy);
    return error;
}

static int take_all(const struct unmount_work *w, struct str *why)
{
    int error = 0;
    /* a lazy unmount includes everything below the mountpoint */
    if (w->nested[0] && !w->lazy && attach_privileged())
        return take_nested(w, why);
    if (w->nested[0] && !w->lazy)
        error = take_mount(w, w->nested, CONTROL, false, why);
    if (!error)
        error = take_data(w, why);
    /* the data mount is gone, so a process with an open file in the control mount cannot prevent its end */
    return error ? error : take_aside(w, why);
}

static int take_guarded(void *user, struct str *why)
{
    const struct unmount_work *w = user;
    int error = w->nested[0] ? process_become_mounter(w->uid, w->gid) : 0;
    return error ? error : take_all(w, why);
}

static int say_busy(const struct live *live, struct str *why)
{
    CLEANUP_STR struct str users = STR_INIT;
    users_of_mount(live->mountpoint, &users);
    str_clear(why);
    str_adds(why, "unmount ");
    str_add_printable(why, live->mountpoint, strlen(live->mountpoint));
    if (users.length > 0)
        str_addf(why, ": in use by %s: end it, or use --lazy", users.data);
    else
        str_adds(why, ": in use by a process that is not visible: try again, or use --lazy");
    return -EBUSY;
}

/* Any access, such as a `dealfs status` of all mounts, makes the mount busy for a moment. */
static int take_idle(struct unmount_work *w, struct str *why)
{
    uint64_t until = clock_now() + BUSY_MS * MILLISECOND;
    for (;;) {
        CLEANUP_STR struct str users = STR_INIT;
        int error = guard_run(take_guarded, w, STEP_SECONDS, why);
        if (error != -EBUSY || clock_now() > until || users_of_mount(w->live->mountpoint, &users) > 0)
            return error;
        str_clear(why);
        clock_sleep(AGAIN_MS * MILLISECOND);
    }
}

static int await_mounter(const struct unmount_work *w, struct str *why)
{
    uint64_t deadline = clock_now() + HELPED_SECONDS * SECOND;
    unsigned minor;
    while (find_on(w, w->live->mountpoint, DATA, &minor) || minor == w->live->minor) {
        if (clock_now() > deadline) {
            str_addf(why, "unmount %s: dealfs-mounter has not unmounted it: is one running? See `dealfs log`",
                     w->live->mountpoint);
            return -ECONNREFUSED;
        }
        clock_sleep(AGAIN_MS * MILLISECOND);
    }
    return 0;
}

/* Only dealfs-mounter can unmount it, and only the keeper is connected to that. The keeper has it unmount lazily. */
static int ask_keeper(const struct unmount_work *w, struct str *why)
{
    CLEANUP_STR struct str users = STR_INIT;
    struct process keeper;
    int inside = w->lazy ? 0 : users_of_mount(w->live->mountpoint, &users);
    if (inside)
        return inside > 0 ? -EBUSY : inside;
    int error = w->live->keeper ? process_watch(w->live->keeper, &keeper) : -ESRCH;
    if (!error) {
        error = process_belongs_to(&keeper, w->uid) ? process_signal(&keeper, SIGUSR1) : -ESRCH;
        process_forget(&keeper);
    }
    if (error == -ESRCH)
        str_addf(why, "unmount %s: its keeper has ended: dealfs-mounter unmounts it", w->live->mountpoint);
    return error ? error : await_mounter(w, why);
}

/* fusermount3 would say that there is no such mount. */
static int check_owner(struct unmount_work *w, struct str *why)
{
    struct attach_mount_info info;
    int error = attach_find(w->live->mountpoint, &info);
    if (error)
        return error == -ENOENT ? 0 : str_fail(why, error, "read the mount table: %s", strerror(-error));
    free(info.source);
    w->uid = info.uid;
    w->gid = info.gid;
    if (attach_privileged() || info.uid == geteuid())
        return 0;
    return str_fail(why, -EPERM, "unmount %s: it is the mount of another user (uid %u)", w->live->mountpoint,
                    (unsigned)info.uid);
}

/* It briefly opens files of the mount, which would then be busy. */
static bool pause_feeder(const struct live *live, struct process *feeder)
{
    return live->configured && live->config.feed &&
           keepers_pause_feeder(live->config.state, live->config.owner_uid, feeder);
}

static int find_nested(struct unmount_work *w, struct str *why)
{
    unsigned minor;
    snprintf(w->nested, sizeof w->nested, "%s/.dealfs", w->live->mountpoint);
    int error = find_on(w, w->nested, CONTROL, &minor);
    if (!minor)
        w->nested[0] = '\0';
    return error ? str_fail(why, error, "read the mount table: %s", strerror(-error)) : 0;
}

/* The connection of a mount that hangs, to be ended when it is unmounted: then another mount may have its number. */
static int find_connection(const struct unmount_work *w)
{
    unsigned minor;
    CLEANUP_CLOSE int connection = w->live->health == LIVE_HUNG ? attach_connection(w->live->minor) : -1;
    if (connection < 0 || find_on(w, w->live->mountpoint, DATA, &minor) || minor != w->live->minor)
        return -1;
    return steal_fd(connection);
}

int unmount_live(const struct live *live, bool lazy, struct str *why)
{
    CLEANUP_STR struct str users = STR_INIT, copies = STR_INIT;
    struct unmount_work w = {.live = live, .lazy = lazy || live->health == LIVE_DEAD || live->health == LIVE_HUNG};
    int error = check_owner(&w, why);
    if (error)
        return error;
    error = find_nested(&w, why);
    if (error)
        return error;
    CLEANUP_CLOSE int connection = find_connection(&w);
    bool inside = w.lazy && users_of_mount(live->mountpoint, &users) > 0;
    struct process feeder = {.id = 0};
    bool paused = pause_feeder(live, &feeder);
    bool helped = live->configured && live->config.mounter && !attach_privileged();
    error = helped ? ask_keeper(&w, why) : take_idle(&w, why);
    if (paused && error)
        keepers_resume_feeder(&feeder);
    else if (paused)
        process_forget(&feeder);
    if (!error && connection >= 0)
        attach_abort(connection);
    if (!error)
        utab_forget(live->mountpoint);
    if (error == -EBUSY)
        return say_busy(live, why);
    if (error && why->length == 0)
        str_addf(why, "unmount %s: %s", live->mountpoint, error == -ETIMEDOUT ? "it hangs" : strerror(-error));
    if (error)
        return error;
    /* another namespace may have a copy, and then waiting is useless */
    bool copied = live_wait_gone(live, INSIDE_SECONDS) && live->source &&
                  users_of_device(live->major, live->minor, live->source, &copies) > 0;
    error = live_wait_gone(live, inside || copied ? 0 : UNMOUNT_SECONDS);
    if (error && inside)
        str_addf(why, "%s is unmounted. The mount ends when these processes leave it: %s", live->mountpoint,
                 users.data);
    else if (error && copied)
        str_addf(why, "%s is unmounted here. Another mount namespace still uses it: %s", live->mountpoint, copies.data);
    else if (error)
        str_addf(why, "%s is unmounted, but its processes have not ended", live->mountpoint);
    return error;
}
