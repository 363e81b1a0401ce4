/* The directory's lock file is locked before anything is touched: a killed server may linger in the kernel with its
 * files open, and until it is gone the directory is not ours. (The lock is by fcntl, not flock, so that children do not
 * inherit it.) */
#include "fs/store/tier-folder.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/store/rocks.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void folder_init(struct tier_folder *f)
{
    *f = (struct tier_folder){.fd = -1, .lock = -1};
}

void folder_fini(struct tier_folder *f)
{
    if (f->lock >= 0)
        close(f->lock);
    if (f->fd >= 0)
        close(f->fd);
    folder_init(f);
}

/* From here on the folder is accessed by descriptor: if its disk is unmounted, nothing is created in the directory
 * below. */
static int find_folder(struct tier_folder *f, const struct tier_config *config, const char **reason)
{
    struct stat st;
    int error = config->inode ? 0 : dir_make(config->directory, 0700);
    CLEANUP_CLOSE int fd = error ? -1 : open(config->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (!error && (fd < 0 || fstat(fd, &st) < 0))
        error = -errno;
    if (!error && config->inode && (st.st_dev != config->device || st.st_ino != config->inode))
        error = -ENODEV;
    if (config->inode && (error == -ENODEV || error == -ENOENT || error == -ENOTDIR))
        *reason = "its directory is missing, or is not the one of the mount: is its disk unmounted?";
    if (error)
        return error;
    f->fd = steal_fd(fd);
    snprintf(f->path, sizeof f->path, "/proc/self/fd/%d", f->fd);
    return 0;
}

static int take_lock(struct tier_folder *f)
{
    char path[sizeof f->path + 8];
    snprintf(path, sizeof path, "%s/lock", f->path);
    CLEANUP_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    /* A lock of the open file, not of the process: RocksDB recognises two openings in one process by the folder's name,
     * which here is a descriptor. */
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &whole) < 0)
        return errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
    f->lock = steal_fd(fd);
    return 0;
}

/* The number in a database's name; 0: not a database. The first format had no number. */
static unsigned form_of(const char *name)
{
    unsigned form;
    int end = 0;
    if (strcmp(name, "db") == 0)
        return 1;
    return sscanf(name, "db-%u%n", &form, &end) == 1 && (name[end] == '\0' || name[end] == '-') ? form : 0;
}

/* Data of older versions is dropped. Data of a newer version is not touched, and the tier is not used. */
static int check_forms(const struct tier_folder *f, const char *directory, const char **reason)
{
    CLEANUP_CLOSEDIR DIR *d = opendir(f->path);
    struct dirent *e;
    unsigned newest = 0;
    if (!d)
        return -errno;
    while ((e = readdir(d)))
        if (form_of(e->d_name) > newest)
            newest = form_of(e->d_name);
    if (newest > ROCKS_FORM) {
        *reason = "a newer version of dealfs wrote it";
        return -ENOTSUP;
    }
    rewinddir(d);
    while ((e = readdir(d))) {
        unsigned form = form_of(e->d_name);
        if (!form || form == ROCKS_FORM)
            continue;
        log_info("%s: an older version of dealfs wrote %s: it is removed and filled again", directory, e->d_name);
        dir_remove_tree(dirfd(d), e->d_name);
    }
    return 0;
}

int folder_take(struct tier_folder *f, const struct tier_config *config, const char **reason)
{
    int error = f->fd < 0 ? find_folder(f, config, reason) : 0;
    if (!error && f->lock < 0)
        error = take_lock(f);
    return error ? error : check_forms(f, config->directory, reason);
}

void folder_clean(const struct tier_folder *f)
{
    CLEANUP_CLOSEDIR DIR *d = opendir(f->path);
    struct dirent *e;
    while (d && (e = readdir(d)))
        if (strncmp(e->d_name, "new-", 4) == 0)
            unlinkat(dirfd(d), e->d_name, 0);
}
