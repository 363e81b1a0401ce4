/* inotify watches and their events. */
#include "fs/feed/pace.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum {
    DIRECTORIES_MOST = 1 << 18, /* the kernel needs about 1 KB per watch */
    BUFFER = 64 << 10,
    REST_MOST = 16384,
    PIECES = 16, /* pieces of the queue per call */
};

struct pace {
    const struct catalog *catalog;
    const char *mountpoint;
    int fd;
    uint32_t *directory; /* directory of each watch: watch descriptors are small, increasing numbers */
    uint32_t watches;    /* number of elements */
    uint64_t *watched;   /* one bit per directory's inode */
    uint32_t count;
    bool full; /* the kernel's limit on watches was reached */
    char buffer[BUFFER] __attribute__((aligned(__alignof__(struct inotify_event))));
};

int pace_create(const struct catalog *catalog, const char *mountpoint, struct pace **pace)
{
    struct pace *p = calloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    p->catalog = catalog;
    p->mountpoint = mountpoint;
    p->watched = calloc(catalog_directories(catalog) / 64 + 1, sizeof *p->watched);
    p->fd = p->watched ? inotify_init1(IN_CLOEXEC | IN_NONBLOCK) : -1;
    if (p->fd < 0) {
        int error = p->watched ? -errno : -ENOMEM;
        pace_destroy(p);
        return error;
    }
    *pace = p;
    return 0;
}

void pace_destroy(struct pace *p)
{
    if (!p)
        return;
    if (p->fd >= 0)
        close(p->fd);
    free(p->directory);
    free(p->watched);
    free(p);
}

int pace_fd(const struct pace *p)
{
    return p->fd;
}

static bool is_watched(const struct pace *p, uint64_t directory)
{
    return p->watched[directory / 64] >> directory % 64 & 1;
}

bool pace_sees(const struct pace *p, uint32_t file)
{
    return is_watched(p, catalog_parent(p->catalog, catalog_file_ino(p->catalog, file)));
}

/* --- watches --- */

static int remember_watch(struct pace *p, int watch, uint64_t directory)
{
    if ((uint32_t)watch >= p->watches) {
        uint32_t more = (uint32_t)watch * 2 + 64;
        uint32_t *grown = realloc(p->directory, more * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        memset(grown + p->watches, 0, (more - p->watches) * sizeof *grown);
        p->directory = grown;
        p->watches = more;
    }
    p->directory[watch] = (uint32_t)directory;
    p->watched[directory / 64] |= UINT64_C(1) << directory % 64;
    p->count++;
    return 0;
}

static int watch_directory(struct pace *p, uint64_t directory)
{
    char path[PATH_MAX];
    size_t n = (size_t)snprintf(path, sizeof path, "%s/", p->mountpoint);
    if (n >= sizeof path || catalog_path(p->catalog, directory, path + n, sizeof path - n) < 0)
        return -ENAMETOOLONG;
    int watch = inotify_add_watch(p->fd, path, IN_ACCESS | IN_CLOSE_NOWRITE | IN_ONLYDIR | IN_DONT_FOLLOW);
    return watch < 0 ? -errno : remember_watch(p, watch, directory);
}

struct counted_directory {
    uint32_t directory, files;
};

static int compare_files(const void *a, const void *b)
{
    const struct counted_directory *x = a, *y = b;
    if (x->files != y->files)
        return x->files > y->files ? -1 : 1;
    return x->directory < y->directory ? -1 : x->directory > y->directory;
}

static struct counted_directory *count_directories(const struct pace *p, const uint32_t *file, uint32_t count,
                                                   uint32_t *found)
{
    uint64_t directories = catalog_directories(p->catalog);
    struct counted_directory *counted = calloc(directories + 1, sizeof *counted);
    uint32_t n = 0;
    if (!counted)
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        counted[catalog_parent(p->catalog, catalog_file_ino(p->catalog, file[i]))].files++;
    for (uint64_t d = 0; d <= directories; d++)
        if (counted[d].files)
            counted[n++] = (struct counted_directory){(uint32_t)d, counted[d].files};
    qsort(counted, n, sizeof *counted, compare_files);
    *found = n;
    return counted;
}

static void say_full(struct pace *p, int error)
{
    log_warning("only %u directories are watched (%s): the loaders' progress is known less exactly, and coverage is "
                "incomplete: raise fs.inotify.max_user_watches",
                p->count, error == -ENOSPC ? "the user's limit is reached" : strerror(-error));
    p->full = true;
}

int pace_watch(struct pace *p, const uint32_t *file, uint32_t count, struct pace_watched *watched)
{
    uint32_t directories = 0;
    CLEANUP_FREE struct counted_directory *counted = count_directories(p, file, count, &directories);
    *watched = (struct pace_watched){.directories = directories};
    if (!counted)
        return -ENOMEM;
    uint32_t before = p->count;
    for (uint32_t i = 0; i < directories; i++) {
        if (!is_watched(p, counted[i].directory) && !p->full) {
            int error = p->count < DIRECTORIES_MOST ? watch_directory(p, counted[i].directory) : -ENOSPC;
            if (error == -ENOSPC || error == -ENOMEM)
                say_full(p, error);
        }
        watched->watched += is_watched(p, counted[i].directory);
    }
    watched->fresh = p->count - before;
    return 0;
}

bool pace_watch_rest(struct pace *p)
{
    uint64_t directories = catalog_directories(p->catalog);
    if (directories > REST_MOST || p->count >= directories)
        return p->count >= directories;
    for (uint64_t d = 1; d <= directories && !p->full; d++)
        if (!is_watched(p, d) && watch_directory(p, d) == -ENOSPC)
            p->full = true; /* not logged: these directories matter little */
    return p->count >= directories;
}

/* --- events --- */

static void take_event(const struct pace *p, const struct inotify_event *event, const struct pace_events *events)
{
    uint64_t ino;
    uint32_t file;
    if (event->mask & IN_Q_OVERFLOW) {
        events->lost(events->user);
        return;
    }
    if ((event->mask & IN_ISDIR) || event->len == 0 || event->wd < 0 || (uint32_t)event->wd >= p->watches ||
        !p->directory[event->wd])
        return;
    size_t n = strnlen(event->name, event->len);
    if (catalog_lookup(p->catalog, p->directory[event->wd], event->name, n, &ino) ||
        catalog_ino_file(p->catalog, ino, &file))
        return;
    if (event->mask & IN_ACCESS)
        events->read(events->user, file);
    if (event->mask & IN_CLOSE_NOWRITE)
        events->closed(events->user, file);
}

bool pace_take(struct pace *p, const struct pace_events *events, bool *drained)
{
    bool gone = false;
    *drained = false;
    for (int i = 0; i < PIECES && !*drained; i++) {
        ssize_t n = read(p->fd, p->buffer, sizeof p->buffer);
        *drained = n < (ssize_t)(sizeof p->buffer / 2); /* the kernel could have returned more */
        if (n <= 0)
            break;
        events->taken(events->user);
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *event = (const void *)(p->buffer + at);
            gone |= (event->mask & IN_UNMOUNT) != 0;
            take_event(p, event, events);
            at += (ssize_t)(sizeof *event + event->len);
        }
    }
    return !gone;
}
