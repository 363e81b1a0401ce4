/* Opens a database. On some kinds of damage RocksDB aborts the process, or hangs, so:
 *
 *   1. Each file is checked before RocksDB opens it (rocks-list.c, rocks-table.c). A check may miss something.
 *   2. The files that RocksDB is about to read are noted (rocks-note.c). A process that finds a note knows that the
 *      previous one died of them: it drops these files, or rebuilds the lists. So no file kills two processes.
 *   3. If the lists (CURRENT, MANIFEST) are damaged or name missing files, the database is rebuilt: segments' files are
 *      set aside, and ingested into an empty database. Each file names its segment, so only damaged data is lost.
 *   4. An interrupted rebuild is resumed by the next opening. A file that is set aside keeps its name until the end;
 *      while RocksDB has the file, that name is its second link.
 *
 * A new segment needs no note: RocksDB reads its file before it lists it, and removes files that it has not listed. */
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
enum { TAKEN_SINGLY = 256 };

static bool is_segment(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, ".sst") == 0;
}

/* RocksDB would take this for a new database, and remove all files in it. */
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

/* --- what is about to be read --- */

static bool is_noted(const struct rocks_note *note, ino_t inode)
{
    bool noted = false;
    for (uint32_t i = 0; i < note->files; i++)
        noted |= note->inode[i] == inode;
    return noted;
}

static int drop_file(const char *path, const char *why)
{
    log_warning("%s: %s: this segment is removed", path, why);
    return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

/* -EBADMSG: the file is damaged. */
static int check_file(const struct rocks *r, const char *path, bool data)
{
    CLEANUP_CLOSE int fd = rocks_open_path(r, path);
    return fd < 0 ? fd : rocks_check_table(fd, data);
}

/* Check a file that RocksDB will read. 1: it was dropped. */
static int look_at_file(const struct rocks *r, const char *path, ino_t inode, const struct rocks_note *before,
                        bool data)
{
    const char *why = is_noted(before, inode) ? "the previous server died while it added it" : NULL;
    int error = why ? 0 : check_file(r, path, data);
    if (error == -EBADMSG)
        why = "it is damaged";
    if (!why)
        return error;
    error = drop_file(path, why);
    return error ? error : 1;
}

/* Check all files of the database: it may list and open any of them. */
static int look_at_database(const struct rocks *r, const struct rocks_note *before)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/" ROCKS_DATABASE, r->directory);
    CLEANUP_CLOSEDIR DIR *d = opendir(path.failed ? "" : path.data);
    struct dirent *e;
    struct stat st;
    int error = d || errno == ENOENT ? 0 : -errno;
    while (d && error >= 0 && (e = readdir(d))) {
        if (!is_segment(e->d_name) || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            !S_ISREG(st.st_mode))
            continue;
        str_clear(&path);
        str_addf(&path, "%s/" ROCKS_DATABASE "/%s", r->directory, e->d_name);
        error = path.failed ? -ENOMEM : look_at_file(r, path.data, st.st_ino, before, false);
    }
    return error < 0 ? error : 0;
}

/* --- taking back --- */

struct taking {
    const struct rocks *rocks;
    const struct rocks_note *before;
    const char *folder; /* folder of files that are set aside */
    char *path[ROCKS_NOTED];
    uint64_t inode[ROCKS_NOTED];
    uint32_t count, most;
};

static void free_files(struct taking *f)
{
    while (f->count)
        free(f->path[--f->count]);
}

static int add_file(struct taking *f, const char *name, ino_t inode)
{
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s/%s", f->folder, name);
    if (path.failed)
        return -ENOMEM;
    int error = look_at_file(f->rocks, path.data, inode, f->before, true);
    if (error)
        return error < 0 ? error : 0;
    f->inode[f->count] = inode;
    f->path[f->count++] = str_steal(&path);
    return 0;
}

/* Find the next files that are set aside. One with a second link was ingested already. */
static int find_aside(struct taking *f, DIR *d)
{
    struct dirent *e;
    struct stat st;
    int error = 0;
    rewinddir(d);
    while (!error && f->count < f->most && (e = readdir(d))) {
        if (!is_segment(e->d_name))
            continue;
        if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return -errno;
        if (st.st_nlink > 1 || !S_ISREG(st.st_mode))
            error = unlinkat(dirfd(d), e->d_name, 0) < 0 ? -errno : 0;
        else
            error = add_file(f, e->d_name, st.st_ino);
    }
    return error;
}

static int ingest_files(struct rocks *r, const struct taking *f, uint32_t first, uint32_t n, struct str *why)
{
    struct rocks_note note = {.files = n};
    memcpy(note.inode, f->inode + first, n * sizeof *note.inode);
    int error = rocks_note_write(r, &note);
    if (error)
        return error;
    char *words = NULL;
    rocksdb_ingest_external_file(r->db, (const char *const *)f->path + first, n, r->ingest, &words);
    error = rocks_take_error(words, why);
    int cleared = rocks_note_clear(r);
    return error ? error : cleared;
}

/* Ingest all together. If one is damaged after all, halve the set until it is found. */
static int take_files(struct rocks *r, const struct taking *f, uint32_t first, uint32_t n)
{
    CLEANUP_STR struct str why = STR_INIT;
    int error = ingest_files(r, f, first, n, &why);
    if (!rocks_is_damage(error)) {
        if (error)
            log_warning("add %s again: %s", f->path[first], why.data ? why.data : strerror(-error));
        for (uint32_t i = first; i < first + n && !error; i++)
            unlink(f->path[i]);
        return error;
    }
    if (n == 1)
        return drop_file(f->path[first], why.data ? why.data : strerror(-error));
    error = take_files(r, f, first, n / 2);
    return error ? error : take_files(r, f, first + n / 2, n - n / 2);
}

/* For each ingestion, RocksDB looks at all its files. So a few files are ingested one by one, but many in groups; if
 * one file of a group kills the process, the whole group is lost. */
static uint32_t count_at_once(DIR *d)
{
    uint32_t files = 0;
    while (readdir(d))
        files++;
    uint32_t most = 1 + files / TAKEN_SINGLY;
    return most < ROCKS_NOTED ? most : ROCKS_NOTED;
}

static int take_back(struct rocks *r, const struct rocks_note *before)
{
    CLEANUP_STR struct str folder = STR_INIT;
    str_addf(&folder, "%s/" ASIDE, r->directory);
    if (folder.failed)
        return -ENOMEM;
    CLEANUP_CLOSEDIR DIR *d = opendir(folder.data);
    if (!d)
        return errno == ENOENT ? 0 : -errno;
    int error;
    struct taking files = {.rocks = r, .before = before, .folder = folder.data, .most = count_at_once(d)};
    do {
        free_files(&files);
        error = find_aside(&files, d);
        if (!error && files.count)
            error = take_files(r, &files, 0, files.count);
    } while (!error && files.count);
    free_files(&files);
    return error ? error : dir_remove_tree(AT_FDCWD, folder.data);
}

/* --- opening --- */

static int read_lists(struct rocks *r, struct str *why)
{
    static const struct rocks_note lists = {.list = true};
    int error = rocks_check_lists(r->directory, why);
    if (!error)
        error = rocks_note_write(r, &lists);
    if (error)
        return error;
    error = rocks_open_listed(r, why);
    int cleared = rocks_note_clear(r);
    return error ? error : cleared;
}

static int open_lists(struct rocks *r, const struct rocks_note *before, struct str *why)
{
    int error = look_at_database(r, before);
    if (error)
        return error;
    if (before->list)
        str_adds(why, "the previous server died while it read them");
    else if (lost_its_list(r->directory))
        str_adds(why, "CURRENT is missing");
    else
        return read_lists(r, why);
    return -EBADMSG;
}

static int open_database(struct rocks *r, struct str *why)
{
    struct rocks_note before;
    int error = rocks_note_read(r, &before);
    if (!error)
        error = open_lists(r, &before, why);
    if (rocks_is_damage(error)) {
        log_warning("%s: %s: its list of segments is rebuilt", r->directory, why->data ? why->data : "damaged");
        str_clear(why);
        error = set_aside(r->directory);
        if (!error)
            error = rocks_open_listed(r, why);
    }
    if (!error)
        error = take_back(r, &before);
    return error ? error : rocks_note_clear(r); /* inode numbers are reused */
}

int rocks_open(const struct rocks_config *config, struct rocks **rocks, struct str *why)
{
    struct rocks *r;
    int error = rocks_create(config, &r);
    if (error)
        return error;
    error = open_database(r, why);
    if (error)
        rocks_close(r);
    else
        *rocks = r;
    return error;
}
