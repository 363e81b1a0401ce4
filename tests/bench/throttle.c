/* A slow source: DIRECTORY again at MOUNTPOINT, read-only, where all readers together get a limited number of bytes per
 * second.
 *
 *   throttle DIRECTORY MOUNTPOINT BYTES-PER-SECOND [MILLISECONDS]
 *
 * One token bucket serves every READ of all readers: a READ takes its bytes out of it at once, and waits until they are
 * paid for. Each READ waits MILLISECONDS besides, as for a distant disk; these overlap. Nothing stays in the page
 * cache, so that a second reader also pays. The attribute user.read of any file is the number of bytes read from all
 * of them. Files should be of at most 128 KiB: what is asked ahead of larger ones is read twice. It ends when it is
 * unmounted. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
/* What an idle bucket has saved: so little that it does not show in an epoch. */
#define SAVED (SECOND / 100)

static int root;
static uint64_t rate, delay;
static _Atomic uint64_t bytes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t paid; /* when all that was taken is paid for; under the lock */

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void wait_until(uint64_t at)
{
    struct timespec t = {(time_t)(at / SECOND), (long)(at % SECOND)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static void take(size_t n)
{
    uint64_t began = now(), at;
    pthread_mutex_lock(&lock);
    if (paid + SAVED < began)
        paid = began - SAVED;
    paid += n * SECOND / rate;
    at = paid;
    pthread_mutex_unlock(&lock);
    wait_until(at > began + delay ? at : began + delay);
}

static const char *below(const char *path)
{
    return path[1] ? path + 1 : ".";
}

static void *throttle_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
    (void)conn;
    config->use_ino = 1;
    config->direct_io = 1;
    config->attr_timeout = config->entry_timeout = 3600;
    return NULL;
}

static int throttle_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
    (void)fi;
    return fstatat(root, below(path), st, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
}

static int throttle_readdir(const char *path, void *out, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *fi,
                            enum fuse_readdir_flags flags)
{
    (void)offset, (void)fi, (void)flags;
    int fd = openat(root, below(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir)
        return -errno;
    for (struct dirent *entry; (entry = readdir(dir));) {
        struct stat st = {.st_ino = entry->d_ino, .st_mode = (mode_t)DTTOIF(entry->d_type)};
        fill(out, entry->d_name, &st, 0, 0);
    }
    closedir(dir);
    return 0;
}

static int throttle_open(const char *path, struct fuse_file_info *fi)
{
    int fd = openat(root, below(path), O_RDONLY | O_CLOEXEC);
    fi->fh = (uint64_t)fd;
    return fd < 0 ? -errno : 0;
}

static int throttle_read(const char *path, char *into, size_t n, off_t offset, struct fuse_file_info *fi)
{
    (void)path;
    ssize_t got = pread((int)fi->fh, into, n, offset);
    if (got < 0)
        return -errno;
    if (got > 0)
        take((size_t)got);
    bytes += (uint64_t)got;
    return (int)got;
}

static int throttle_release(const char *path, struct fuse_file_info *fi)
{
    (void)path;
    close((int)fi->fh);
    return 0;
}

static int throttle_getxattr(const char *path, const char *name, char *value, size_t size)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%ju", (uintmax_t)bytes);
    (void)path;
    if (strcmp(name, "user.read") != 0)
        return -ENODATA;
    if (size > 0 && size < (size_t)n)
        return -ERANGE;
    if (size > 0)
        memcpy(value, text, (size_t)n);
    return n;
}

static const struct fuse_operations operations = {
    .init = throttle_init,
    .getattr = throttle_getattr,
    .readdir = throttle_readdir,
    .open = throttle_open,
    .read = throttle_read,
    .release = throttle_release,
    .getxattr = throttle_getxattr,
};

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 5 || (rate = strtoull(argv[3], NULL, 10)) == 0) {
        fprintf(stderr, "usage: throttle DIRECTORY MOUNTPOINT BYTES-PER-SECOND [MILLISECONDS]\n");
        return 2;
    }
    delay = argc > 4 ? strtoull(argv[4], NULL, 10) * (SECOND / 1000) : 0;
    root = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        perror(argv[1]);
        return 1;
    }
    /* A thread for each READ that waits. */
    char *options[] = {argv[0], "-f", "-oro,allow_other,default_permissions,max_threads=256,fsname=throttle", argv[2]};
    return fuse_main(4, options, &operations, NULL);
}
