/* Files, and the table of descriptors, which says whose they are: those of a killed process are closed. Calls on
 * regular files are not changed. */
#include "tests/sim/descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { SYNC_MOST_NS = 5000000 };

struct descriptor sim_fd_table[FDS];
int sim_fd_end;

int fd_own(int fd)
{
    if (fd < 0 || fd >= FDS || !sim_is_simulated())
        return fd;
    if (fd >= sim_fd_end)
        sim_fd_end = fd + 1;
    sim_fd_table[fd] = (struct descriptor){.owner = sim_self->process};
    return fd;
}

/* Sockets are not opened, and nobody opens a pipe by name. */
static int own_file(int fd)
{
    if (fd_own(fd) >= 0 && fd_is_known(fd))
        sim_fd_table[fd].kind = FILE_LIKE;
    return fd;
}

static void disown(int fd)
{
    if (!fd_is_known(fd))
        return;
    fd_leaves(fd);
    sim_fd_table[fd] = (struct descriptor){.owner = NULL};
}

bool fd_waits(int fd)
{
    struct stat st;
    if (!fd_is_known(fd))
        return false;
    if (sim_fd_table[fd].kind == UNKNOWN && fstat(fd, &st) == 0) {
        mode_t kind = st.st_mode & S_IFMT; /* 0: an eventfd and its like */
        sim_fd_table[fd].kind = kind == 0 || S_ISSOCK(kind) || S_ISFIFO(kind) ? WAITS : FILE_LIKE;
    }
    return sim_fd_table[fd].kind == WAITS;
}

void sim_files_close(struct sim_process *dead)
{
    for (int fd = 0; fd < sim_fd_end; fd++)
        if (sim_fd_table[fd].owner == dead) {
            disown(fd);
            syscall(SYS_close, fd);
        }
    fd_changed(0);
}

/* --- what makes and ends descriptors --- */

WRAP(int, open, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    sim_pause("to open a file");
    return own_file(__real_open(path, flags, mode));
}

WRAP(int, openat, int directory, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    sim_pause("to open a file");
    return own_file(__real_openat(directory, path, flags, mode));
}

WRAP(int, memfd_create, const char *name, unsigned flags)
{
    return own_file(__real_memfd_create(name, flags));
}

WRAP(int, pipe2, int fd[2], int flags)
{
    int error = __real_pipe2(fd, flags);
    for (int i = 0; !error && i < 2; i++)
        fd_own(fd[i]);
    return error;
}

WRAP(int, fcntl, int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *argument = va_arg(args, void *);
    va_end(args);
    int result = __real_fcntl(fd, command, argument);
    if (command == F_SETFL)
        fd_set_flags(fd, (int)(intptr_t)argument);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
        fd_came(result);
    return result;
}

WRAP(int, close, int fd)
{
    sim_pause("to close");
    bool waited = fd_is_known(fd) && sim_fd_table[fd].kind == WAITS;
    disown(fd);
    int error = __real_close(fd);
    return waited ? (int)fd_changed(error) : error;
}

/* It belongs to the stream now, which is closed in the C library. */
WRAP(DIR *, fdopendir, int fd)
{
    DIR *folder = __real_fdopendir(fd);
    if (folder)
        disown(fd);
    return folder;
}

/* --- regular files: other threads may run meanwhile, and nothing is written to a real disk --- */

static int sync_file(int fd)
{
    sim_sleep_until(sim.now + sim_random(SYNC_MOST_NS), "a sync");
    if (power_synced)
        power_synced(fd);
    return 0;
}

static int named(int error, int directory, const char *path)
{
    if (!error && power_named && sim_is_simulated())
        power_named(directory, path);
    return error;
}

WRAP(int, fsync, int fd)
{
    return sim_is_simulated() ? sync_file(fd) : __real_fsync(fd);
}

WRAP(int, fdatasync, int fd)
{
    return sim_is_simulated() ? sync_file(fd) : __real_fdatasync(fd);
}

/* Pages are taken when they are written to: that all of them are there only takes time. */
WRAP(int, fallocate, int fd, int mode, off_t at, off_t n)
{
    struct stat st;
    if (!sim_is_simulated() || mode)
        return __real_fallocate(fd, mode, at, n);
    return fstat(fd, &st) < 0 ? -1 : st.st_size < at + n ? ftruncate(fd, at + n) : 0;
}

WRAP(ssize_t, preadv, int fd, const struct iovec *part, int parts, off_t at)
{
    sim_pause("to read a file");
    return __real_preadv(fd, part, parts, at);
}

WRAP(ssize_t, pwrite, int fd, const void *bytes, size_t n, off_t at)
{
    sim_pause("to write a file");
    return __real_pwrite(fd, bytes, n, at);
}

/* The source has no access control lists. */
WRAP(ssize_t, getxattr, const char *path, const char *name, void *value, size_t n)
{
    if (!sim_is_simulated())
        return __real_getxattr(path, name, value, n);
    errno = ENODATA;
    return -1;
}

WRAP(int, renameat, int from, const char *old, int to, const char *new)
{
    sim_pause("to rename a file");
    return named(__real_renameat(from, old, to, new), to, new);
}

WRAP(int, rename, const char *old, const char *new)
{
    sim_pause("to rename a file");
    return named(__real_rename(old, new), AT_FDCWD, new);
}
