/* Opening a database. One whose lists (CURRENT, MANIFEST) are damaged or lead to files that are gone, is made anew:
 * the segments' files are set aside, and taken back into an empty database. Each tells itself which segment it is, so
 * that nothing is lost but what is damaged. An opening that was cut short is gone on with by the next one: a file
 * that is set aside has a name of its own for as long as it exists, and while RocksDB has it, a second name there. */
#include "fs/store/rocks-inside.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ASIDE ROCKS_DATABASE "-aside"
enum { TAKEN_AT_ONCE = 256 };

static bool is_segment(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".sst") == 0;
}

/* RocksDB would take it for a new one, and remove all that is there. */
static bool lost_its_list(const char *directory)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/" ROCKS_DATABASE, directory);
    CLEANUP_CLOSEDIR DIR *d = opendir(path.failed ? "" : path.data);
    struct dirent *e;
    if (!d || faccessat(dirfd(d), "CURRENT", F_OK, 0) == 0 || errno != ENOENT)
        return false;
    while ((e = readdir(d)))
        if (is_segment(e->d_name))
            return true;
    return false;
}

static int set_file_aside(int from, const char *name, int to)
{
    struct stat st;
    char own[32];
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    snprintf(own, sizeof own, "%ju.sst", (uintmax_t)st.st_ino);
    return renameat(from, name, to, own) < 0 ? -errno : 0;
}

static int set_aside(const char *directory)
{
    CLEANUP_CLOSE int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 || (mkdirat(dir, ASIDE, 0700) < 0 && errno != EEXIST))
        return -errno;
    CLEANUP_CLOSE int to = openat(dir, ASIDE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = openat(dir, ROCKS_DATABASE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    CLEANUP_CLOSEDIR DIR *from = fd < 0 ? NULL : fdopendir(fd);
    if (to < 0 || !from)
        return -errno;
    int error = 0;
    struct dirent *e;
    while (!error && (e = readdir(from)))
        if (is_segment(e->d_name))
            error = set_file_aside(dirfd(from), e->d_name, to);
    return error ? error : dir_remove_tree(dir, ROCKS_DATABASE);
}

struct paths {
    char *path[TAKEN_AT_ONCE];
    size_t count;
};

static void free_paths(struct paths *p)
{
    while (p->count)
        free(p->path[--p->count]);
}

/* The next few files that are set aside; one with a second name was taken back already. */
static int find_aside(DIR *d, const char *folder, struct paths *p)
{
    struct dirent *e;
    struct stat st;
    rewinddir(d);
    while (p->count < TAKEN_AT_ONCE && (e = readdir(d))) {
        if (!is_segment(e->d_name))
            continue;
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return -errno;
        if (st.st_nlink > 1 && unlinkat(dirfd(d), e->d_name, 0) < 0)
            return -errno;
        if (st.st_nlink > 1)
            continue;
        CLEANUP_STR struct str path = STR_INIT;
        str_addf(&path, "%s/%s", folder, e->d_name);
        if (!(p->path[p->count] = str_steal(&path)))
            return -ENOMEM;
        p->count++;
    }
    return 0;
}

/* All at once; where one of them is damaged, by halves until it is found. */
static int take_files(struct rocks *r, char *const *path, size_t n)
{
    CLEANUP_STR struct str why = STR_INIT;
    char *words = NULL;
    rocksdb_ingest_external_file(r->db, (const char *const *)path, n, r->ingest, &words);
    int error = rocks_take_error(words, &why);
    if (!rocks_is_damage(error)) {
        if (error)
            log_warning("take %s back: %s", path[0], why.data ? why.data : strerror(-error));
        for (size_t i = 0; i < n && !error; i++)
            unlink(path[i]);
        return error;
    }
    if (n == 1) {
        log_warning("%s: %s: this segment is dropped", path[0], why.data ? why.data : strerror(-error));
        return unlink(path[0]) < 0 ? -errno : 0;
    }
    error = take_files(r, path, n / 2);
    return error ? error : take_files(r, path + n / 2, n - n / 2);
}

static int take_back(struct rocks *r)
{
    CLEANUP_STR struct str folder = STR_INIT;
    str_addf(&folder, "%s/" ASIDE, r->directory);
    if (folder.failed)
        return -ENOMEM;
    CLEANUP_CLOSEDIR DIR *d = opendir(folder.data);
    if (!d)
        return errno == ENOENT ? 0 : -errno;
    int error;
    struct paths paths = {.count = 0};
    do {
        free_paths(&paths);
        error = find_aside(d, folder.data, &paths);
        if (!error && paths.count)
            error = take_files(r, paths.path, paths.count);
    } while (!error && paths.count);
    free_paths(&paths);
    return error ? error : dir_remove_tree(AT_FDCWD, folder.data);
}

static int open_listed(const struct rocks_config *config, struct rocks **rocks, struct str *why)
{
    if (!lost_its_list(config->directory))
        return rocks_open_once(config, rocks, why);
    str_adds(why, "CURRENT is gone");
    return -EBADMSG;
}

int rocks_open(const struct rocks_config *config, struct rocks **rocks, struct str *why)
{
    struct rocks *r;
    int error = open_listed(config, &r, why);
    if (rocks_is_damage(error)) {
        log_warning("%s: %s: its list of segments is made anew", config->directory, why->data ? why->data : "damaged");
        str_clear(why);
        error = set_aside(config->directory);
        if (!error)
            error = rocks_open_once(config, &r, why);
    }
    if (error)
        return error;
    error = take_back(r);
    if (error)
        rocks_close(r);
    else
        *rocks = r;
    return error;
}
