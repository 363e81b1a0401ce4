/* Implements fs/store/rocks.h without RocksDB: a segment is a file of its values, concatenated. It exists as soon as it
 * has its name. */
#include "tests/sim/disk.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/store/index.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct rocks {
    char *directory;
    bool ram;
};

struct rocks_writer {
    struct rocks *rocks;
    uint32_t segment;
    struct str bytes;
    bool whole;
};

static void segment_path(const struct rocks *r, uint32_t segment, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/" ROCKS_DATABASE "/%u", r->directory, segment);
}

int disk_open(const struct rocks_config *config, struct rocks **rocks, struct str *why)
{
    char path[PATH_MAX];
    (void)why;
    struct rocks *r = calloc(1, sizeof *r);
    if (!r || !(r->directory = strdup(config->directory))) {
        free(r);
        return -ENOMEM;
    }
    r->ram = config->ram;
    snprintf(path, sizeof path, "%s/" ROCKS_DATABASE, r->directory);
    if (mkdir(path, 0700) < 0 && errno != EEXIST) {
        int error = -errno;
        disk_close(r);
        return error;
    }
    *rocks = r;
    return 0;
}

void disk_close(struct rocks *r)
{
    if (r)
        free(r->directory);
    free(r);
}

uint64_t disk_overhead(uint64_t segments)
{
    return segments * 4096;
}

static int by_segment(const void *a, const void *b)
{
    uint32_t x = ((const struct rocks_file *)a)->segment, y = ((const struct rocks_file *)b)->segment;
    return (x > y) - (x < y);
}

int disk_list(struct rocks *r, struct rocks_file **files, size_t *count)
{
    enum { MOST = 1024 };
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" ROCKS_DATABASE, r->directory);
    CLEANUP_CLOSEDIR DIR *d = opendir(path);
    *count = 0;
    *files = calloc(MOST, sizeof **files);
    for (struct dirent *e; d && *files && *count < MOST && (e = readdir(d));) {
        struct stat st;
        if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &st, 0) < 0)
            continue;
        struct rocks_file *f = &(*files)[(*count)++];
        *f = (struct rocks_file){(uint32_t)strtoul(e->d_name, NULL, 10), true, (uint64_t)st.st_size, ""};
        snprintf(f->name, sizeof f->name, "%u", f->segment);
    }
    if (*files)
        qsort(*files, *count, sizeof **files, by_segment);
    return d && *files ? 0 : -ENOMEM;
}

int disk_find(struct rocks *r, uint32_t segment, struct rocks_file *file)
{
    char path[PATH_MAX];
    struct stat st;
    segment_path(r, segment, path);
    if (stat(path, &st) < 0)
        return -errno;
    *file = (struct rocks_file){segment, true, (uint64_t)st.st_size, ""};
    snprintf(file->name, sizeof file->name, "%u", segment);
    return 0;
}

int disk_open_file(const struct rocks *r, const char *name, bool *spare)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" ROCKS_DATABASE "/%s", r->directory, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *spare = fd % 2 == 0;
    return fd < 0 ? -errno : fd;
}

const char *disk_read(int fd, uint64_t from, uint64_t to, char *buffer, int *error)
{
    uint64_t begin = from / ROCKS_ALIGN * ROCKS_ALIGN;
    ssize_t n = pread(fd, buffer, to - begin, (off_t)begin);
    *error = n < 0 ? -errno : (uint64_t)n < to - begin ? -EBADMSG : 0;
    return *error ? NULL : buffer + (from - begin);
}

int disk_drop(struct rocks *r, uint32_t segment)
{
    char path[PATH_MAX];
    segment_path(r, segment, path);
    return unlink(path) < 0 ? -errno : 0;
}

int disk_drop_open(struct rocks *r, const struct rocks_file *file)
{
    char path[PATH_MAX];
    segment_path(r, file->segment, path);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    int error = disk_drop(r, file->segment);
    if (!error && fd >= 0)
        (void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)(file->bytes + ROCKS_HUGE_PAGE));
    return error;
}

int disk_write_begin(struct rocks *r, uint32_t segment, struct rocks_writer **writer)
{
    struct rocks_writer *w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    w->rocks = r;
    w->segment = segment;
    str_adds(&w->bytes, "segment"); /* no value begins at 0 */
    *writer = w;
    return 0;
}

int disk_write_put(struct rocks_writer *w, uint32_t place, const void *bytes, size_t n, uint32_t *at)
{
    *at = (uint32_t)w->bytes.length;
    w->whole |= place == INDEX_PLACE;
    str_add(&w->bytes, bytes, n);
    return w->bytes.failed ? -ENOMEM : 0;
}

/* As rocks.h promises: it survives any crash. */
static int sync_directory(const struct rocks *r)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" ROCKS_DATABASE, r->directory);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 || fsync(fd) ? -errno : 0;
}

int disk_write_end(struct rocks_writer *w, struct rocks_file *file)
{
    char path[PATH_MAX];
    segment_path(w->rocks, w->segment, path);
    int error = w->whole ? 0 : -EIO;
    if (!error)
        error = file_write_atomic(AT_FDCWD, path, w->bytes.data, w->bytes.length, 0600);
    if (!error)
        error = sync_directory(w->rocks);
    if (!error)
        error = disk_find(w->rocks, w->segment, file);
    disk_write_cancel(w);
    return error;
}

void disk_write_cancel(struct rocks_writer *w)
{
    if (w)
        str_fini(&w->bytes);
    free(w);
}
