/* Removes what a mount leaves. */
#include "fs/keeper/takedown.h"

#include "fs/attach/attach.h"
#include "fs/attach/mount-health.h"
#include "fs/attach/mounter.h"
#include "fs/attach/pair.h"
#include "fs/attach/utab.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/base/process.h"
#include "fs/base/ready.h"
#include "fs/wire/handover.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/vfs.h>

enum { CHILD_S = 20, AGAIN_MS = 200, MOUNTS_MOST = 4 << 20 };

/* --- children --- */

/* There may be no room for another process now. At the end the keeper has time to wait for it. */
static pid_t fork_child(bool at_end)
{
    uint64_t deadline = clock_now() + (at_end ? CHILD_S * SECOND : 0);
    pid_t child;
    while ((child = fork()) < 0 && clock_now() < deadline)
        clock_sleep(AGAIN_MS * MILLISECOND);
    if (child == 0) {
        handover_let_go(false);
        prctl(PR_SET_NAME, "dealfs-takedown");
    } else if (child < 0) {
        log_error("fork: %s", strerror(errno));
    }
    return child;
}

void takedown_await(pid_t child)
{
    int status;
    if (child > 0 && process_await_child(child, CHILD_S, &status) == -ETIMEDOUT)
        log_warning("a child process that unmounts hangs: the keeper no longer waits for it");
}

/* --- on request --- */

static volatile sig_atomic_t asked;

static void note_asked(int number)
{
    asked = number;
}

void takedown_listen(void)
{
    signal(SIGUSR1, note_asked);
    if (handover_has(FD_MOUNTER))
        mounter_send(FD_MOUNTER, "k", MOUNTER_KEEPER, (const int[MOUNTER_FDS]){-1, -1});
}

bool takedown_asked(void)
{
    bool was = asked != 0;
    asked = 0;
    return was;
}

/* --- mounts --- */

/* Our mount has ended, and returns that error at once. What returns something else may be another mount. */
static bool may_be_anothers(const struct mount_config *config)
{
    struct statfs fs;
    return mount_health_of(statfs(config->mountpoint, &fs) < 0 ? -errno : 0) != MOUNT_DEAD;
}

/* If the mounter was killed: another one unmounts the mounts, or fusermount3, because they belong to this user. */
static void unmount_both(struct mount_config config, enum takedown how, unsigned data, unsigned control)
{
    CLEANUP_STR struct str why = STR_INIT;
    bool spare = how == TAKEDOWN_ENDED && may_be_anothers(&config);
    uint64_t left = (spare ? TAKE_SPARES : 0) | (data ? TAKE_DATA : 0) | (control ? TAKE_CONTROL : 0);
    if (handover_has(FD_MOUNTER) && mounter_do(FD_MOUNTER, MOUNTER_TAKE, left, &why) == 0)
        return;
    str_clear(&why);
    if (config.mounter && data && mounter_take_left(config.mounter, data, &why) == 0)
        return;
    if (why.length)
        log_error("%s", why.data);
    config.data_minor = data;
    config.control_minor = control;
    const struct pair pair = pair_of(&config);
    pair_take(&pair, spare);
}

/* The number of an ended connection may be another mount's by now. */
static unsigned live_minor(int device, unsigned minor)
{
    return ready_now(device, 0) ? 0 : minor;
}

pid_t takedown_start(const struct mount_config *config, enum takedown how)
{
    bool ends = how != TAKEDOWN_LIVE;
    /* before the look whether they have ended */
    CLEANUP_CLOSE int data_connection = ends ? attach_connection(config->data_minor) : -1;
    CLEANUP_CLOSE int control_connection = ends ? attach_connection(config->control_minor) : -1;
    unsigned data = live_minor(FD_DATA, config->data_minor), control = live_minor(FD_CONTROL, config->control_minor);
    pid_t child = fork_child(ends);
    if (child == 0) {
        if (data && data_connection >= 0)
            attach_abort(data_connection);
        if (control && control_connection >= 0)
            attach_abort(control_connection);
        unmount_both(*config, how, data, control);
        _exit(0);
    }
    return child;
}

static uint64_t again_at; /* 0: no need */

void takedown_leave(const struct mount_config *config)
{
    again_at = takedown_start(config, TAKEDOWN_LIVE) < 0 ? clock_now() + SECOND : 0;
}

void takedown_again(const struct mount_config *config)
{
    if (again_at && clock_now() >= again_at)
        takedown_leave(config);
}

/* --- does it exist? --- */

static int is_device(void *user, const char *path, const struct attach_mount_info *info)
{
    (void)path;
    return info->major == 0 && info->minor == *(const unsigned *)user;
}

/* `process` is a folder of /proc. One that may not be read belongs to another user, who cannot have this mount's files.
 * True also if its table could not be read. */
static bool may_have_mounted(int process, const char *device)
{
    CLEANUP_STR struct str mounts = STR_INIT;
    int error = file_read(process, "mountinfo", MOUNTS_MOST, &mounts);
    if (error)
        return process_look_error(error) != 0;
    return mounts.length > 0 && strstr(mounts.data, device);
}

/* Reads would fail if the answer were wrongly no: so it is yes if a look fails. */
static bool may_be_elsewhere(unsigned minor)
{
    CLEANUP_CLOSEDIR DIR *d = opendir("/proc");
    char device[32];
    snprintf(device, sizeof device, " 0:%u ", minor);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        CLEANUP_CLOSE int process = openat(dirfd(d), e->d_name, O_DIRECTORY | O_CLOEXEC);
        if (process < 0 ? process_look_error(-errno) : may_have_mounted(process, device))
            return true;
    }
    return !d;
}

pid_t takedown_look(const struct mount_config *config)
{
    pid_t child = fork_child(false);
    if (child == 0) {
        unsigned minor = config->data_minor;
        _exit(!minor || attach_each(NULL, is_device, &minor) != 0 || may_be_elsewhere(minor) ? 0 : 1);
    }
    return child;
}

/* --- files --- */

static void warn_of(const char *what, const char *path, int error)
{
    CLEANUP_STR struct str name = STR_INIT;
    str_add_printable(&name, path, strlen(path));
    log_warning("%s %s: %s", what, name.data ? name.data : "", strerror(error));
}

static void remove_files(const struct mount_config *config)
{
    if (config->ram_path) {
        int error = dir_remove_tree(AT_FDCWD, config->ram_path);
        if (error && error != -ENOENT)
            warn_of("remove", config->ram_path, -error);
    }
    CLEANUP_STR struct str courier = STR_INIT;
    str_addf(&courier, "%s/courier", config->state);
    if (!courier.failed && unlink(courier.data) && errno != ENOENT)
        warn_of("remove", courier.data, errno);
    size_t state = strlen(config->state);
    bool in_state = strncmp(config->control, config->state, state) == 0 && config->control[state] == '/';
    if (in_state && rmdir(config->control) && errno != ENOENT)
        warn_of("remove", config->control, errno);
}

void takedown_files(const struct mount_config *config)
{
    pid_t child = fork_child(true);
    if (child == 0) {
        remove_files(config);
        _exit(0);
    }
    takedown_await(child);
    child = fork_child(true);
    if (child == 0) {
        utab_forget(config->mountpoint);
        _exit(0);
    }
    takedown_await(child);
}
