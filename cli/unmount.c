/* The nested control mount stands in the way of the data mount's end, but must come back if that turns out to be busy. So
 * it is first bound to its place in the state directory, which nobody is in:
 *
 *   bind MOUNTPOINT/.dealfs on STATE/control ─▶ unmount .dealfs ─▶ unmount MOUNTPOINT ─▶ unmount STATE/control
 *                 ▲                                                       │ busy
 *                 └──────────────────── nest again ◀──────────────────────┘ */
#include "cli/unmount.h"

#include "cli/guard.h"
#include "cli/users.h"
#include "cli/utab.h"
#include "fs/base/cleanup.h"
#include "fs/mount/attach.h"

#include <string.h>
#include <sys/mount.h>

enum { STEP_SECONDS = 20, INSIDE_SECONDS = 1 };

struct work {
    const struct live *live;
    char nested[4096 + 16]; /* MOUNTPOINT/.dealfs, "" when nothing of ours is mounted on it */
    bool lazy;
};

static bool control_stands_on(const char *path)
{
    struct attach_mount_info info;

    if (attach_find(path, &info))
        return false;
    bool ours = strcmp(info.type, "fuse.dealfs-ctl") == 0;
    free(info.source);
    return ours;
}

static bool data_stands_on(const char *path)
{
    struct attach_mount_info info;

    if (attach_find(path, &info))
        return false;
    bool ours = strcmp(info.type, "fuse.dealfs") == 0;
    free(info.source);
    return ours;
}

/* Whatever the keeper has taken away meanwhile is as good as taken away here. */
static int take_control(const char *path, bool lazy, struct str *why)
{
    if (!control_stands_on(path))
        return 0;
    int error = attach_unmount(path, lazy, why);
    if (!error || control_stands_on(path))
        return error;
    str_clear(why);
    return 0;
}

static int take_data(const struct work *w, struct str *why)
{
    if (!data_stands_on(w->live->mountpoint))
        return 0;
    int error = attach_unmount(w->live->mountpoint, w->lazy, why);
    if (!error || data_stands_on(w->live->mountpoint))
        return error;
    str_clear(why);
    return 0;
}

/* A lazy one takes everything below the mountpoint along. */
static int take_lazily(const struct work *w, struct str *why)
{
    int error = take_data(w, why);

    if (!error && w->live->configured)
        error = take_control(w->live->config.control, true, why);
    return error;
}

static int take_nested(const struct work *w, struct str *why)
{
    const char *aside = w->live->config.control;

    if (mount(w->nested, aside, NULL, MS_BIND, NULL) < 0) {
        int error = -errno;
        str_addf(why, "bind %s on %s: %s", w->nested, aside, strerror(-error));
        return error;
    }
    int error = attach_unmount(w->nested, false, why);
    if (!error) {
        error = take_data(w, why);
        if (error) {
            CLEANUP_STR struct str ignored = STR_INIT;
            if (attach_nest(aside, w->live->mountpoint, &ignored) == 0)
                return error;
        }
    }
    CLEANUP_STR struct str ignored = STR_INIT;
    take_control(aside, true, &ignored);
    return error;
}

static int take_all(const struct work *w, struct str *why)
{
    if (w->lazy)
        return take_lazily(w, why);
    if (w->nested[0] && w->live->configured && attach_privileged())
        return take_nested(w, why);
    if (w->nested[0]) {
        int error = take_control(w->nested, false, why);
        if (error)
            return error;
    }
    int error = take_data(w, why);
    /* The data mount is gone: whoever has a file of the other one open cannot keep it. */
    if (!error && w->live->configured)
        error = take_control(w->live->config.control, true, why);
    return error;
}

static int take(void *user, struct str *why)
{
    const struct work *w = user;

    utab_forget(w->live->mountpoint);
    int error = take_all(w, why);
    if (error && w->nested[0])
        utab_note(w->live->source, w->live->mountpoint);
    return error;
}

static int say_busy(const struct live *live, struct str *why)
{
    CLEANUP_STR struct str users = STR_INIT;

    users_of_mount(live->mountpoint, &users);
    str_clear(why);
    str_adds(why, "unmount ");
    str_add_printable(why, live->mountpoint, strlen(live->mountpoint));
    if (users.length > 0)
        str_addf(why, ": in use by %s", users.data);
    else
        str_adds(why, ": in use");
    str_adds(why, " (--lazy takes it away all the same)");
    return -EBUSY;
}

/* fusermount3 would say that there is no such mount. */
static int check_owner(const struct live *live, struct str *why)
{
    struct attach_mount_info info;

    if (attach_privileged() || attach_find(live->mountpoint, &info))
        return 0;
    free(info.source);
    if (info.uid == geteuid())
        return 0;
    str_addf(why, "unmount %s: it is the mount of another user (uid %u)", live->mountpoint, (unsigned)info.uid);
    return -EPERM;
}

int unmount_live(const struct live *live, bool lazy, struct str *why)
{
    int error = check_owner(live, why);
    if (error)
        return error;
    CLEANUP_STR struct str users = STR_INIT, copies = STR_INIT;
    struct work w = {.live = live, .lazy = lazy || live->health == LIVE_DEAD || live->health == LIVE_HUNG};

    snprintf(w.nested, sizeof w.nested, "%s/.dealfs", live->mountpoint);
    if (!control_stands_on(w.nested))
        w.nested[0] = '\0';
    bool inside = w.lazy && users_of_mount(live->mountpoint, &users) > 0;
    error = guard_run(take, &w, STEP_SECONDS, why);
    if (error == -EBUSY)
        return say_busy(live, why);
    if (error && why->length == 0)
        str_addf(why, "unmount %s: %s", live->mountpoint, error == -ETIMEDOUT ? "it hangs" : strerror(-error));
    if (error)
        return error;
    if (live->health == LIVE_HUNG)
        attach_abort(live->minor);
    /* Some other namespace may have a copy, and then waiting is of no use. */
    bool copied = live_wait_gone(live, INSIDE_SECONDS) && users_of_device(live->major, live->minor, &copies) > 0;
    error = live_wait_gone(live, inside || copied ? 0 : UNMOUNT_SECONDS);
    if (error && inside)
        str_addf(why, "%s is unmounted, and ends when those inside have left: %s", live->mountpoint, users.data);
    else if (error && copied)
        str_addf(why, "%s is unmounted here, but another mount namespace has it still: that of %s", live->mountpoint,
                 copies.data);
    else if (error)
        str_addf(why, "%s is unmounted, but its processes have not ended", live->mountpoint);
    return error;
}
