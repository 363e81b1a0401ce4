/* A segment of shared memory is in use while a process has it mapped. The directory of a session belongs to the mpirun
 * or the daemon whose number its name has. Others do not show their owner, and stay. */
#include "cli/mount/mpirun-left.h"

#include "cli/base/place.h"
#include "cli/live/users.h"
#include "cli/mount/folder.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/mpi-versions.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

/* A starting process has created its segment and not mapped it yet. */
static const int64_t JUST_MADE_S = 60;

static bool is_ours(int dir, const char *name, mode_t type)
{
    struct stat st;
    return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid() &&
           (st.st_mode & S_IFMT) == type && st.st_mtim.tv_sec + JUST_MADE_S < (int64_t)(clock_realtime() / 1000000000);
}

static void take_left(struct clean *clean, int dir, const char *at, const char *name)
{
    CLEANUP_FREE char *path = place_join(at, name);
    int error = clean->dry_run ? 0 : dir_remove_tree(dir, name);
    if (error)
        clean_failed(clean, path ? path : name, strerror(-error));
    else
        clean_removed(clean, path ? path : name, "left by Open MPI; its job has ended");
}

static void clean_segments(struct clean *clean)
{
    static const char at[] = "/dev/shm";
    CLEANUP_CLOSEDIR DIR *d = opendir(at);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        CLEANUP_STR struct str users = STR_INIT;
        CLEANUP_FREE char *path = place_join(at, e->d_name);
        if (path && open_mpi_is_segment(e->d_name) && is_ours(dirfd(d), e->d_name, S_IFREG) &&
            users_of_mount(path, &users) == 0)
            take_left(clean, dirfd(d), at, e->d_name);
    }
}

static bool is_gone(pid_t pid)
{
    return pid > 0 && kill(pid, 0) < 0 && errno == ESRCH;
}

static void clean_sessions(struct clean *clean, const char *temporary)
{
    CLEANUP_CLOSEDIR DIR *d = opendir(temporary);
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (is_gone(open_mpi_session(e->d_name, place_host(), geteuid())) && is_ours(dirfd(d), e->d_name, S_IFDIR))
            take_left(clean, dirfd(d), temporary, e->d_name);
}

/* The temporary directory may be everybody's: another user may have made this one. */
static void clean_sessions_of_user(struct clean *clean, const char *temporary)
{
    char name[512];
    open_mpi_sessions(place_host(), geteuid(), name, sizeof name);
    CLEANUP_FREE char *path = place_join(temporary, name);
    CLEANUP_CLOSE int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != geteuid())
        return;
    CLEANUP_CLOSEDIR DIR *d = folder_list(fd);
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (is_gone(open_mpi_session_in(e->d_name)) && is_ours(dirfd(d), e->d_name, S_IFDIR))
            take_left(clean, dirfd(d), path, e->d_name);
    if (!clean->dry_run)
        rmdir(path); /* if it is empty now */
}

static void clean_temporary(struct clean *clean, const char *temporary)
{
    clean_sessions(clean, temporary);
    clean_sessions_of_user(clean, temporary);
}

void mpirun_left_clean(struct clean *clean)
{
    const char *temporary = getenv("TMPDIR");
    clean_segments(clean);
    clean_temporary(clean, "/tmp");
    if (temporary && *temporary && strcmp(temporary, "/tmp") != 0)
        clean_temporary(clean, temporary);
}
