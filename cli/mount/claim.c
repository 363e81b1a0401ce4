/* A lock in each folder shows that it is in use: flock, which ends with the processes of a mount however they end, and
 * which cleaners of temporary directories respect. A folder that was removed between our look and our lock is not
 * claimed. */
#include "cli/mount/folder.h"

#include "cli/base/place.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

static char *claim_path(const struct folder_wish *w, unsigned number)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s.%u", w->prefix, number);
    return path.failed ? NULL : str_steal(&path);
}

int folder_number(const char *path)
{
    const char *dot = strrchr(path, '.');
    unsigned number;
    int end = 0;
    if (!dot || sscanf(dot + 1, "%9u%n", &number, &end) != 1 || dot[1 + end])
        return -1;
    return (int)number;
}

static bool is_there(const struct folder_wish *w, unsigned number)
{
    CLEANUP_FREE char *path = claim_path(w, number);
    struct stat st;
    return path && (dir_has_mount(AT_FDCWD, path) || lstat(path, &st) == 0);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

int folder_open_lock(int folder, const char *lock)
{
    int flags = lock ? O_RDWR | O_CREAT | O_NONBLOCK : O_RDONLY | O_DIRECTORY;
    CLEANUP_CLOSE int fd = openat(folder, lock ? lock : ".", flags | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    return lock && !S_ISREG(st.st_mode) ? -EINVAL : steal_fd(fd);
}

/* A mount also locks its state directory itself, since a cleaner may have removed the lock file. */
static bool is_held(int folder)
{
    CLEANUP_CLOSE int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return again >= 0 && flock(again, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* -EAGAIN: it is in use, or was just removed. */
static int lock_folder(const char *path, const char *lock, int *locked)
{
    CLEANUP_CLOSE int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), fd = -1;
    struct stat opened, now, file, file_now;
    fd = folder < 0 ? -errno : folder_open_lock(folder, lock);
    if (fd < 0)
        return fd == -ENOENT ? -EAGAIN : fd;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -EAGAIN : -errno;
    if (lock && is_held(folder))
        return -EAGAIN;
    if (fstat(folder, &opened) < 0 || lstat(path, &now) < 0 || !same_file(&opened, &now) || fstat(fd, &file) < 0 ||
        fstatat(folder, lock ? lock : ".", &file_now, AT_SYMLINK_NOFOLLOW) < 0 || !same_file(&file, &file_now))
        return -EAGAIN;
    futimens(folder, NULL); /* time of the last use */
    *locked = steal_fd(fd);
    return 0;
}

/* Another user's folder or mount, or a file, only occupies this number. */
static bool is_foreign(const char *path, uid_t uid)
{
    struct stat st;
    return dir_has_mount(AT_FDCWD, path) || (lstat(path, &st) == 0 && (st.st_uid != uid || !S_ISDIR(st.st_mode)));
}

static int claim_one(const struct folder_wish *w, unsigned number, struct folder_claim *claim, struct str *why)
{
    CLEANUP_FREE char *path = claim_path(w, number);
    bool made = false;
    int lock = -1;
    if (!path)
        return -ENOMEM;
    if (is_foreign(path, w->uid))
        return -EAGAIN;
    int error = folder_make(w, path, &made, why);
    if (error && is_foreign(path, w->uid)) {
        str_clear(why);
        return -EAGAIN;
    }
    if (error)
        return error;
    error = lock_folder(path, w->lock, &lock);
    if (error == -EAGAIN)
        return error;
    if (error)
        return place_error(why, "lock", path, error);
    *claim = (struct folder_claim){.path = steal_pointer(path), .lock = lock, .made = made};
    return 0;
}

void folder_discard(const char *path, const char *lock)
{
    int locked;
    if (lock_folder(path, lock, &locked))
        return;
    dir_remove_tree(AT_FDCWD, path);
    close(locked);
}

static int claim_any(const struct folder_wish *w, bool there, struct folder_claim *claim, struct str *why)
{
    for (unsigned i = 0; i < FOLDER_CLAIMS; i++) {
        int error = is_there(w, i) == there ? claim_one(w, i, claim, why) : -EAGAIN;
        if (error != -EAGAIN)
            return error;
    }
    return -EAGAIN;
}

static int claim_listed(const struct folder_wish *w, struct folder_claim *claim, struct str *why)
{
    const char *slash = strrchr(w->prefix, '/'), *name = slash ? slash + 1 : w->prefix;
    CLEANUP_FREE char *parent = strndup(w->prefix, (size_t)(name - w->prefix));
    CLEANUP_CLOSEDIR DIR *dir = parent ? opendir(*parent ? parent : ".") : NULL;
    struct dirent *d;
    while (dir && (d = readdir(dir))) {
        size_t n = strlen(name);
        int number = strncmp(d->d_name, name, n) == 0 && d->d_name[n] == '.' ? folder_number(d->d_name + n) : -1;
        int error = number >= FOLDER_CLAIMS ? claim_one(w, (unsigned)number, claim, why) : -EAGAIN;
        if (error != -EAGAIN)
            return error;
    }
    return -EAGAIN;
}

/* Any user could create all the folders that are tried in /var/tmp, but not those with a random name. */
static int claim_random(const struct folder_wish *w, struct folder_claim *claim, struct str *why)
{
    enum { TRIES = 8, NUMBERS = 1000000000 };
    int error = -EAGAIN;
    unsigned random;
    for (int i = 0; error == -EAGAIN && i < TRIES; i++) {
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            return -EIO;
        error = claim_one(w, FOLDER_CLAIMS + random % (NUMBERS - FOLDER_CLAIMS), claim, why);
    }
    return error;
}

int folder_claim(const struct folder_wish *w, struct folder_claim *claim, struct str *why)
{
    int error = -EAGAIN;
    if (w->number >= 0 && (w->own || is_there(w, (unsigned)w->number)))
        error = claim_one(w, (unsigned)w->number, claim, why);
    if (error == -EAGAIN)
        error = claim_any(w, true, claim, why);
    /* another process may have been faster */
    if (error == -EAGAIN)
        error = claim_any(w, false, claim, why);
    if (error == -EAGAIN)
        error = claim_listed(w, claim, why);
    if (error == -EAGAIN)
        error = claim_random(w, claim, why);
    return error != -EAGAIN
               ? error
               : place_fail(why, w->what, w->prefix, "other processes took each name first: try again", -EBUSY);
}
