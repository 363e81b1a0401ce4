/* A state is in use while its lock is held; a shard, while its folder or RocksDB's lock file is locked. */
#include "cli/mount/leavings.h"

#include "cli/base/command.h"
#include "cli/base/guard.h"
#include "cli/base/place.h"
#include "cli/mount/folder.h"
#include "cli/mount/owner.h"
#include "fs/attach/config.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/process.h"
#include "fs/wire/units.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { HASH_DIGITS = 16, CLEAN_SECONDS = 10 * 60 };
static const char SHM[] = "/dev/shm";
/* A starting mount has created its folder, but not yet the file that shows its worth. */
#define JUST_MADE (60 * SECOND)

/* A folder under examination. */
struct leaving {
    int parent;     /* borrowed */
    const char *at; /* path of the parent */
    const char *name;
    struct stat st;
    char path[PATH_MAX];
};

/* --- reports --- */

static void say_path(struct clean *clean, const char *what, const char *path, const char *why)
{
    CLEANUP_STR struct str line = STR_INIT;
    str_addf(&line, "%s ", what);
    str_add_printable(&line, path, strlen(path));
    if (why)
        str_addf(&line, ": %s", why);
    str_adds(&line, "\n");
    if (line.failed)
        return;
    if (clean->said)
        str_adds(clean->said, line.data);
    else
        fputs(line.data, stdout);
}

void clean_removed(struct clean *clean, const char *path, const char *why)
{
    say_path(clean, clean->dry_run ? "would remove" : "removed", path, why);
    clean->removed++;
}

void clean_failed(struct clean *clean, const char *path, const char *why)
{
    say_path(clean, "cannot remove", path, why);
    clean->failed++;
}

static void clean_kept(struct clean *clean, const char *path, const char *why)
{
    say_path(clean, "kept", path, why);
}

/* --- folders --- */

/* dealfs-…-HASH, also with .NUMBER */
static bool named_like_ours(const char *name)
{
    size_t length = strlen(name);
    const char *dot = strrchr(name, '.');
    if (dot && folder_number(name) >= 0)
        length = (size_t)(dot - name);
    if (strncmp(name, "dealfs-", 7) != 0 || length < 7 + HASH_DIGITS || name[length - HASH_DIGITS - 1] != '-')
        return false;
    for (size_t i = length - HASH_DIGITS; i < length; i++)
        if (!isxdigit((unsigned char)name[i]))
            return false;
    return true;
}

static int folder_open(const struct leaving *f)
{
    return openat(f->parent, f->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int remove_folder(const struct leaving *f, int fd)
{
    CLEANUP_CLOSEDIR DIR *dir = folder_list(fd);
    struct dirent *d;
    int error = dir ? 0 : -errno;
    while (!error && (d = readdir(dir)))
        if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            error = dir_remove_tree(fd, d->d_name);
    if (!error && unlinkat(f->parent, f->name, AT_REMOVEDIR) < 0)
        error = -errno;
    return error;
}

static void take_away(struct clean *clean, const struct leaving *f, int fd)
{
    int error = clean->dry_run ? 0 : remove_folder(f, fd);
    if (error)
        clean_failed(clean, f->path, error == -ENAMETOOLONG ? "directories are nested too deep" : strerror(-error));
    else
        clean_removed(clean, f->path, NULL);
}

static void take_cache(struct clean *clean, const struct leaving *f, int fd)
{
    uint64_t bytes = dir_bytes(f->parent, f->name);
    int failed = clean->failed;
    take_away(clean, f, fd);
    if (clean->failed == failed) {
        clean->bytes += bytes;
        clean->caches_removed++;
    }
}

/* Was anything written to its known files within this time? */
static bool is_younger(int fd, uint64_t age)
{
    static const char *const names[] = {
        ".", "log", "lock", "config", ROCKS_DATABASE, ROCKS_DATABASE "/LOG", ROCKS_DATABASE "/CURRENT"};
    uint64_t newest = 0;
    struct stat st;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno != ENOENT && errno != ENOTDIR)
                return true; /* it may be */
            continue;
        }
        uint64_t changed = (uint64_t)st.st_mtim.tv_sec * SECOND + (uint64_t)st.st_mtim.tv_nsec;
        newest = changed > newest ? changed : newest;
    }
    return newest + age > clock_realtime();
}

/* --- shards --- */

/* The error of opening a lock: nobody has locked it. No process of ours makes a link. */
static bool no_lock_is_there(int error)
{
    return error == ENOENT || error == ELOOP;
}

/* RocksDB uses fcntl locks. A file that cannot be examined may be locked. */
static bool rocksdb_locked(int fd, const char *name)
{
    CLEANUP_CLOSE int lock = openat(fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct flock probe = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (lock < 0)
        return !no_lock_is_there(errno);
    return fcntl(lock, F_OFD_GETLK, &probe) < 0 || probe.l_type != F_UNLCK;
}

/* Returns the held lock, so that no mount begins to use it; -1: it is in use. */
static int lock_shard(int fd)
{
    CLEANUP_CLOSE int lock = folder_open_lock(fd, NULL);
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0 || rocksdb_locked(fd, "lock") ||
        rocksdb_locked(fd, ROCKS_DATABASE "/LOCK"))
        return -1;
    return steal_fd(lock);
}

/* On an SSD, a shard is a cache for the next mount. In memory, its mount is dead, and it would be found again only
 * by chance. */
static void clean_shard(struct clean *clean, const struct leaving *f)
{
    CLEANUP_CLOSE int fd = folder_open(f), lock = -1;
    bool in_memory = strcmp(f->at, SHM) == 0;
    uint64_t age = in_memory ? JUST_MADE : clean->older;
    if (fd < 0)
        return;
    lock = lock_shard(fd);
    if (lock < 0)
        clean_kept(clean, f->path, "in use");
    else if (age > 0 && is_younger(fd, age))
        clean_kept(clean, f->path, in_memory ? "just used" : "younger than --older");
    else if (in_memory)
        take_away(clean, f, fd);
    else
        take_cache(clean, f, fd);
}

/* --- states --- */

/* The shard that a state names; it must belong to the same user. */
static void clean_shard_of(struct clean *clean, const char *state)
{
    struct mount_config config;
    struct leaving f = {.parent = -1, .at = ""};
    if (config_read(state, &config) < 0)
        return;
    CLEANUP_FREE char *parent = config.ssd_path ? strdup(config.ssd_path) : NULL;
    config_fini(&config);
    char *slash = parent ? strrchr(parent, '/') : NULL;
    if (!slash || slash == parent || !named_like_ours(slash + 1))
        return;
    snprintf(f.path, sizeof f.path, "%s", parent);
    *slash = '\0';
    CLEANUP_CLOSE int at = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    f.parent = at;
    f.name = slash + 1;
    if (at >= 0 && fstatat(at, f.name, &f.st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(f.st.st_mode) &&
        f.st.st_uid == geteuid())
        clean_shard(clean, &f);
}

/* 1, 0, or -errno: unknown. */
static int has_file(int fd, const char *name)
{
    struct stat st;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 1;
    return errno == ENOENT ? 0 : -errno;
}

/* A folder without the file that every state folder has may be anything, so it stays. So does one whose files cannot be
 * examined. */
static void clean_state(struct clean *clean, const struct leaving *f)
{
    CLEANUP_CLOSE int fd = folder_open(f), lock = -1;
    int catalog = fd < 0 ? -errno : has_file(fd, "catalog");
    if (catalog < 0 || (!catalog && has_file(fd, "lock") <= 0 && has_file(fd, "config") <= 0))
        return;
    bool worthless = !catalog;
    if (worthless && is_younger(fd, JUST_MADE)) {
        clean_kept(clean, f->path, "just made");
        return;
    }
    lock = openat(fd, "lock", O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool has_lock = lock >= 0 || !no_lock_is_there(errno);
    /* a mount holds both; the lock file may have been removed */
    if ((has_lock && flock(lock, LOCK_EX | LOCK_NB) < 0) || flock(fd, LOCK_EX | LOCK_NB) < 0) {
        clean_kept(clean, f->path, "its mount is up");
    } else if (worthless) {
        take_away(clean, f, fd);
    } else if (!clean->caches) {
        if (!clean->dry_run)
            unlinkat(fd, "courier", 0); /* its socket */
        clean->caches_kept++;
    } else if (clean->older > 0 && is_younger(fd, clean->older)) {
        clean_kept(clean, f->path, "younger than --older");
    } else {
        clean_shard_of(clean, f->path);
        take_cache(clean, f, fd);
    }
}

/* --- directories of them --- */

typedef void clean_one(struct clean *clean, const struct leaving *f);

struct clean_work {
    struct clean clean;
    const struct leaving *leaving;
    clean_one *each;
};

/* Returns its counts, then its lines. */
static int clean_in_child(void *user, struct str *out)
{
    CLEANUP_STR struct str said = STR_INIT;
    struct clean_work *w = user;
    struct owner owner;
    int error = owner_of_uid(w->leaving->st.st_uid, &owner);
    if (!error)
        error = process_become(owner.uid, owner.gid);
    if (error)
        return error;
    w->clean.said = &said;
    w->each(&w->clean, w->leaving);
    str_add(out, &w->clean, sizeof w->clean);
    str_add(out, said.data ? said.data : "", said.length);
    return 0;
}

/* For another user's folder, root uses a child that becomes this user before it opens anything there. */
static void clean_as_owner(struct clean *clean, const struct leaving *f, clean_one *each)
{
    CLEANUP_STR struct str out = STR_INIT;
    struct clean_work w = {*clean, f, each};
    if (f->st.st_uid == geteuid()) {
        each(clean, f);
        return;
    }
    int error = guard_run(clean_in_child, &w, CLEAN_SECONDS, &out);
    if (error || out.length < sizeof w.clean) {
        clean_failed(clean, f->path, command_why(&out, error ? error : -EIO));
        return;
    }
    memcpy(clean, out.data, sizeof *clean);
    clean->said = w.clean.said;
    fwrite(out.data + sizeof w.clean, 1, out.length - sizeof w.clean, stdout);
}

static int clean_parent(struct clean *clean, const char *at, bool named(const char *name), clean_one *each)
{
    CLEANUP_CLOSEDIR DIR *dir = opendir(at);
    struct dirent *d;
    if (!dir)
        return -errno;
    while ((d = readdir(dir))) {
        struct leaving f = {.parent = dirfd(dir), .at = at, .name = d->d_name};
        snprintf(f.path, sizeof f.path, "%s/%s", at, d->d_name);
        if (named(d->d_name) && !dir_has_mount(f.parent, f.name) &&
            fstatat(f.parent, f.name, &f.st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(f.st.st_mode) &&
            (geteuid() == 0 || f.st.st_uid == geteuid()))
            clean_as_owner(clean, &f, each);
    }
    return 0;
}

/* Each folder is cleaned once, even if two variables name it. */
void leavings_states(struct clean *clean)
{
    const char *const parents[] = {getenv("SLURM_TMPDIR"), getenv("TMPDIR"), "/var/tmp"};
    enum { PARENTS = sizeof parents / sizeof *parents };
    char *seen[PARENTS] = {NULL};
    for (int i = 0; i < PARENTS; i++) {
        bool twice = false;
        seen[i] = parents[i] && *parents[i] ? realpath(parents[i], NULL) : NULL;
        for (int j = 0; j < i && seen[i]; j++)
            twice |= seen[j] && strcmp(seen[i], seen[j]) == 0;
        if (seen[i] && !twice)
            clean_parent(clean, seen[i], named_like_ours, clean_state);
    }
    for (int i = 0; i < PARENTS; i++)
        free(seen[i]);
}

void leavings_memory(struct clean *clean)
{
    clean_parent(clean, SHM, named_like_ours, clean_shard);
}

/* DIRECTORY/dealfs-USER, which root has created for a user: see split.c. */
static bool named_like_place(const char *name)
{
    return strncmp(name, "dealfs-", 7) == 0 && !named_like_ours(name);
}

static void clean_place(struct clean *clean, const struct leaving *f)
{
    clean_parent(clean, f->path, named_like_ours, clean_shard);
}

int leavings_shards(struct clean *clean, const char *directory)
{
    CLEANUP_FREE char *real = realpath(directory, NULL);
    if (!real)
        return -errno;
    int error = clean_parent(clean, real, named_like_ours, clean_shard);
    return error ? error : clean_parent(clean, real, named_like_place, clean_place);
}
