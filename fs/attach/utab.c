/* A note is made by mount(8), which is asked to do nothing else (--fake) and not to call our helper (-i). umount(8)
 * does not remove notes of mounts that are gone, as most are when their keeper ends: so that is done here, like
 * libmount does. A line looks like
 *
 *   SRC=/data TARGET=/mnt/data\040one ROOT=/ OPTS=x-dealfs
 *
 * Every user may read utab.lock, and so lock it. After WAIT_S we stop waiting and leave the note unchanged, which
 * matters only to a later umount(8). */
#include "fs/attach/utab.h"

#include "fs/attach/attach.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>

extern char **environ;

enum { UTAB_MOST = 16 << 20, WAIT_S = 1, AGAIN_MS = 10 };
static const char utab[] = "/run/mount/utab", utab_lock[] = "/run/mount/utab.lock";

static bool has_notes(void)
{
    return geteuid() == 0 && access("/run/mount", W_OK) == 0;
}

static int lock_notes(void)
{
    CLEANUP_CLOSE int lock = open(utab_lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    uint64_t deadline = clock_now() + WAIT_S * SECOND;
    while (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK || clock_now() > deadline)
            return -1;
        clock_sleep(AGAIN_MS * MILLISECOND);
    }
    return steal_fd(lock);
}

void utab_note(const char *source, const char *mountpoint)
{
    char *argv[] = {"mount",    "-i", "-f",           "--no-canonicalize", "-t", "fuse.dealfs", "-o",
                    "x-dealfs", "--", (char *)source, (char *)mountpoint,  NULL};
    int status;
    pid_t child;
    if (has_notes() && posix_spawnp(&child, argv[0], NULL, NULL, argv, environ) == 0)
        process_await_child(child, WAIT_S, &status); /* mount(8) waits for the lock without limit */
}

static bool is_note(const char *line, const char *mountpoint)
{
    const char *target = strstr(line, "TARGET=");
    if (!target || !strstr(line, "OPTS=x-dealfs"))
        return false;
    target += strlen("TARGET=");
    CLEANUP_FREE char *path = strndup(target, strcspn(target, " "));
    if (path)
        attach_unescape(path);
    return path && strcmp(path, mountpoint) == 0;
}

static bool is_mounted(const char *path)
{
    struct attach_mount_info info;
    int error = attach_find(path, &info);
    if (!error)
        free(info.source);
    return error != -ENOENT;
}

void utab_forget(const char *mountpoint)
{
    CLEANUP_CLOSE int lock = has_notes() ? lock_notes() : -1;
    CLEANUP_STR struct str text = STR_INIT, left = STR_INIT;
    if (lock < 0 || is_mounted(mountpoint) || file_read(AT_FDCWD, utab, UTAB_MOST, &text) || text.length == 0)
        return;
    for (char *rest = text.data, *line; (line = strsep(&rest, "\n"));)
        if (*line && !is_note(line, mountpoint))
            str_addf(&left, "%s\n", line);
    if (!left.failed && left.length < text.length)
        file_write_atomic(AT_FDCWD, utab, left.length > 0 ? left.data : "", left.length, 0644);
}
