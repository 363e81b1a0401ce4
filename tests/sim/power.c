/* Each rename and removal below a state directory or an SSD tier is a version of that name: a hidden link to the file,
 * or nothing. Three rules say what survives a loss of power:
 *
 * 1. Bytes of a file survive if the file was synced; otherwise some are missing or zero.
 * 2. Names in one directory survive in order, up to a random moment.
 * 3. All names survive that are older than COMMIT, or older than the last sync of their directory.
 *
 * The product never writes into a file that has its name, so a file has one content. Files without versions (locks,
 * sockets) stay. Nothing here is a switching point. */
#include "tests/sim/power.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/world/world.h"
#include "tests/lib/tap.h"
#include "tests/sim/faults.h"
#include "tests/sim/node.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COMMIT (UINT64_C(5000000000)) /* of journalling file systems */

enum { SYNCED = 1024, BLOCK = 4096, MOST = 64 << 20 };

struct version {
    TAILQ_ENTRY(version) next;
    char path[PATH_MAX];
    unsigned link; /* 0: no file */
    bool synced;
    uint64_t at; /* 0: it is on disk */
};
TAILQ_HEAD(versions, version);

static struct {
    char directory[PATH_MAX]; /* "": nothing is noted */
    struct versions all;      /* the oldest first */
    unsigned links;
    ino_t synced[SYNCED]; /* the last files that were */
    unsigned syncs;
} power = {.all = TAILQ_HEAD_INITIALIZER(power.all)};

void *__real_calloc(size_t count, size_t n);

void power_begin(const char *directory)
{
    if (sim_options->faults == 0) /* no node loses its power */
        return;
    snprintf(power.directory, sizeof power.directory, "%s/hidden", directory);
    if (dir_make(power.directory, 0700))
        bail_out("%s", power.directory);
}

/* --- what is noted --- */

static const char *hidden_path(unsigned link)
{
    static char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/%u", power.directory, link);
    return path;
}

/* What RocksDB does is not seen: it keeps all. */
static bool is_kept(const char *path)
{
    return strstr(path, "/state-") || (strstr(path, "/ssd-") && !sim_options->rocks);
}

/* Absolute, without links; false: it is not on a disk that is kept. What the product names has no links in it. */
static bool find_path(int dir, const char *name, char path[PATH_MAX])
{
    char self[64], folder[PATH_MAX];
    if (!power.directory[0] || (*name != '/' && dir == AT_FDCWD))
        return false;
    snprintf(self, sizeof self, "/proc/self/fd/%d", dir);
    ssize_t n = *name == '/' ? 0 : readlink(self, folder, sizeof folder);
    if (n < 0 || snprintf(path, PATH_MAX, "%.*s%s%s", (int)n, folder, n ? "/" : "", name) >= PATH_MAX)
        return false;
    return is_kept(path);
}

static void drop(struct version *v)
{
    TAILQ_REMOVE(&power.all, v, next);
    if (v->link)
        syscall(SYS_unlink, hidden_path(v->link));
    free(v);
}

/* Older versions of the name than one that is on disk are gone for good. */
static void forget_older(const char *path, uint64_t now)
{
    struct version *v, *newer = NULL, *before;
    for (v = TAILQ_LAST(&power.all, versions); v; v = before) {
        before = TAILQ_PREV(v, versions, next);
        if (strcmp(v->path, path))
            continue;
        if (newer)
            drop(v);
        else if (v->at + COMMIT <= now)
            newer = v;
    }
}

static void note(const char *path, bool there)
{
    struct stat st;
    struct version *v = __real_calloc(1, sizeof *v); /* not the server's */
    if (!v)
        bail_out("no memory for a version");
    strcpy(v->path, path);
    v->at = sim_now();
    if (there && lstat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        v->link = ++power.links;
        if (link(path, hidden_path(v->link)))
            bail_out("a hidden link");
        for (unsigned i = 0; i < SYNCED; i++)
            v->synced |= power.synced[i] == st.st_ino;
    }
    forget_older(path, v->at);
    TAILQ_INSERT_TAIL(&power.all, v, next);
}

/* --- called where these are wrapped: wrap-files.c --- */

void power_named(int dir, const char *name)
{
    char path[PATH_MAX];
    if (find_path(dir, name, path))
        note(path, true);
}

void power_synced(int fd)
{
    struct stat st;
    struct version *v;
    char self[64], path[PATH_MAX] = "";
    if (!power.directory[0] || fstat(fd, &st))
        return;
    if (S_ISREG(st.st_mode)) {
        if (!bug_is_planted("sync"))
            power.synced[power.syncs++ % SYNCED] = st.st_ino;
        return;
    }
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    size_t n = realpath(self, path) ? strlen(path) : 0;
    TAILQ_FOREACH(v, &power.all, next)
        if (n && !strncmp(v->path, path, n) && v->path[n] == '/' && !strchr(v->path + n + 1, '/'))
            v->at = 0;
}

int __real_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags)
{
    char path[PATH_MAX];
    struct stat st;
    bool kept = find_path(dir, name, path) && lstat(path, &st) == 0;
    int error = __real_unlinkat(dir, name, flags);
    for (unsigned i = 0; !error && kept && st.st_nlink == 1 && i < SYNCED; i++)
        if (power.synced[i] == st.st_ino)
            power.synced[i] = 0; /* the number may be used again */
    if (!error && kept)
        note(path, false);
    return error;
}

int __wrap_unlink(const char *name);
int __wrap_unlink(const char *name)
{
    return __wrap_unlinkat(AT_FDCWD, name, 0);
}

/* --- the loss --- */

/* What was never synced: cut, and a block of it perhaps not written. */
static void tear(const char *path)
{
    struct stat st;
    char zeros[BLOCK] = {0};
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0 || fstat(fd, &st))
        bail_out("%s", path);
    uint64_t size = (uint64_t)st.st_size, left = sim_random(2) ? size : sim_random(size + 1);
    uint64_t hole = left ? sim_random(left) / BLOCK * BLOCK : 0;
    uint64_t length = left - hole < BLOCK ? left - hole : BLOCK;
    if (ftruncate(fd, (off_t)left) || syscall(SYS_pwrite64, fd, zeros, length, hole) < 0)
        bail_out("%s", path);
    syscall(SYS_close, fd);
    effects[EFFECT_TORN]++;
}

/* The name gets this version: a copy, for the bytes may be those of other versions. */
static void restore(const struct version *v)
{
    struct str bytes = STR_INIT;
    struct stat is, was;
    if (v->synced && lstat(v->path, &is) == 0 && stat(hidden_path(v->link), &was) == 0 && is.st_ino == was.st_ino)
        return;
    syscall(SYS_unlink, v->path);
    if (!v->link)
        return;
    if (file_read(AT_FDCWD, hidden_path(v->link), MOST, &bytes))
        bail_out("%s", hidden_path(v->link));
    int fd = (int)syscall(SYS_openat, AT_FDCWD, v->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || file_write_all(fd, bytes.data ? bytes.data : "", bytes.length))
        bail_out("%s", v->path);
    syscall(SYS_close, fd);
    if (!v->synced)
        tear(v->path);
    str_fini(&bytes);
}

static bool is_below(const struct version *v, const char *directory)
{
    size_t n = strlen(directory);
    return !strncmp(v->path, directory, n) && v->path[n] == '/';
}

/* Of the changes that need not be on disk yet, the first `left` are. */
static void lose_changes(const char *directory, uint64_t left)
{
    struct version *next;
    for (struct version *v = TAILQ_FIRST(&power.all); v; v = next) {
        next = TAILQ_NEXT(v, next);
        if (!is_below(v, directory) || v->at + COMMIT <= sim_now())
            continue;
        if (left) {
            left--;
            continue;
        }
        syscall(SYS_unlink, v->path);
        drop(v);
        effects[EFFECT_UNNAMED]++;
    }
}

static void lose_power(const char *directory)
{
    uint64_t changes = 0;
    struct version *v, *later;
    TAILQ_FOREACH(v, &power.all, next)
        changes += is_below(v, directory) && v->at + COMMIT > sim_now();
    lose_changes(directory, sim_random(changes + 1));
    TAILQ_FOREACH(v, &power.all, next) {
        if (!is_below(v, directory))
            continue;
        for (later = TAILQ_NEXT(v, next); later && strcmp(later->path, v->path);)
            later = TAILQ_NEXT(later, next);
        if (!later)
            restore(v);
        v->at = 0;
        v->synced = true; /* what is there now is on disk */
    }
}

/* What was being written has no name of its own yet. */
static void tear_unfinished(const char *directory)
{
    char path[PATH_MAX];
    CLEANUP_CLOSEDIR DIR *d = opendir(directory);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[strlen(e->d_name) - 1] != '~')
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
        if (sim_random(2))
            syscall(SYS_unlink, path);
        else
            tear(path);
    }
}

/* The next server reads it. -ENODATA: a write of the layout had failed. */
static void check_world(const struct sim_node *n)
{
    struct shelf *shelf;
    struct world *world = NULL;
    if (shelf_create(n->state, &shelf))
        bail_out("a shelf");
    int error = world_load(n->state, shelf, sim_dataset.catalog, &world);
    if (error && error != -ENOENT && !(error == -ENODATA && n->disk_error))
        sim_fail("node %u: its saved world is damaged after a loss of power: %s", n->number, strerror(-error));
    effects[EFFECT_RECALLED] += !error;
    if (!error)
        world_put(world);
    shelf_destroy(shelf);
}

void power_fail(struct sim_node *n)
{
    lose_power(n->state);
    lose_power(n->ssd);
    tear_unfinished(n->state);
    effects[EFFECT_POWER]++;
    check_world(n);
}
