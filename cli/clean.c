/* `dealfs clean`: remove what mounts that are no longer up have left.
 *
 * First the mounts whose processes are gone, then state folders with the shards that their `config` names, then shards
 * in /dev/shm without a state. A state folder is in use while somebody holds its lock; a shard, while a server holds
 * RocksDB's. Of another user's folders root trusts nothing but what is owned by the same user and named like ours. */
#include "cli/command.h"

#include "cli/live.h"
#include "cli/place.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/size.h"
#include "fs/mount/attach.h"
#include "fs/mount/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { HASH_DIGITS = 16 };
/* A mount that is just starting has made its folder and not yet taken the lock. */
static const uint64_t JUST_MADE = 60 * 1000000000ull;

struct clean {
    uint64_t older; /* nanoseconds; younger folders stay */
    bool dry_run;
    int removed, failed;
};

/* A folder that is looked at. */
struct folder {
    int parent;     /* borrowed */
    const char *at; /* the parent's path */
    const char *name;
    struct stat st;
};

static bool named_like_ours(const char *name)
{
    size_t length = strlen(name);

    if (strncmp(name, "dealfs-", 7) != 0 || length < 7 + HASH_DIGITS || name[length - HASH_DIGITS - 1] != '-')
        return false;
    for (size_t i = length - HASH_DIGITS; i < length; i++) {
        if (!isxdigit((unsigned char)name[i]))
            return false;
    }
    return true;
}

static bool may_remove(uid_t owner)
{
    return geteuid() == 0 || owner == geteuid();
}

static int folder_open(const struct folder *f)
{
    int fd = openat(f->parent, f->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

static void say(const struct clean *clean, const char *what, const char *path, const char *why)
{
    CLEANUP_STR struct str line = STR_INIT;

    str_adds(&line, clean->dry_run && strcmp(what, "removed") == 0 ? "would remove" : what);
    str_adds(&line, " ");
    str_add_printable(&line, path, strlen(path));
    if (why)
        str_addf(&line, ": %s", why);
    if (!line.failed)
        printf("%s\n", line.data);
}

static void remove_folder(struct clean *clean, const struct folder *f)
{
    char path[PATH_MAX];
    int error = clean->dry_run ? 0 : dir_remove_tree(f->parent, f->name);

    snprintf(path, sizeof path, "%s/%s", f->at, f->name);
    if (error) {
        say(clean, "cannot remove", path, strerror(-error));
        clean->failed++;
    } else {
        say(clean, "removed", path, NULL);
        clean->removed++;
    }
}

static uint64_t changed(const struct stat *st)
{
    return (uint64_t)st->st_mtim.tv_sec * 1000000000 + (uint64_t)st->st_mtim.tv_nsec;
}

/* Since when nothing has been written to a state folder or a shard, as far as their known files tell. */
static uint64_t idle_since(int fd)
{
    static const char *const names[] = {".", "log", "lock", "config", "LOG", "CURRENT"};
    uint64_t newest = 0;
    struct stat st;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 && changed(&st) > newest)
            newest = changed(&st);
    }
    return newest;
}

static bool young(int fd, uint64_t age)
{
    return idle_since(fd) + age > clock_realtime();
}

/* RocksDB's locks are fcntl's. */
static bool rocksdb_locked(int fd)
{
    CLEANUP_CLOSE int lock = openat(fd, "LOCK", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    struct flock probe = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return lock >= 0 && fcntl(lock, F_OFD_GETLK, &probe) == 0 && probe.l_type != F_UNLCK;
}

/* Does a process hold the lock of a RocksDB in this folder, or in one right below? */
static bool shard_locked(int fd)
{
    CLEANUP_CLOSE int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_CLOSEDIR DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *d;

    if (!dir)
        return false;
    steal_fd(copy);
    if (rocksdb_locked(fd))
        return true;
    while ((d = readdir(dir))) {
        CLEANUP_CLOSE int below = openat(fd, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (d->d_name[0] != '.' && below >= 0 && rocksdb_locked(below))
            return true;
    }
    return false;
}

/* A shard's folder, anywhere: of `owner`, named like ours, in use by nobody. */
static void clean_shard(struct clean *clean, const char *path, uid_t owner)
{
    CLEANUP_FREE char *parent = strdup(path);
    char *slash = parent ? strrchr(parent, '/') : NULL;
    CLEANUP_CLOSE int at = -1, fd = -1;

    if (!slash || slash == parent)
        return;
    *slash = '\0';
    at = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct folder f = {.parent = at, .at = parent, .name = slash + 1};
    if (at < 0 || !named_like_ours(f.name))
        return;
    fd = folder_open(&f);
    if (fd < 0 || fstat(fd, &f.st) < 0 || f.st.st_uid != owner)
        return;
    if (shard_locked(fd))
        say(clean, "kept", path, "in use");
    else
        remove_folder(clean, &f);
}

static void clean_shards_of(struct clean *clean, const char *state, uid_t owner)
{
    struct mount_config config;

    if (config_read(state, &config) < 0)
        return;
    if (config.ssd_path)
        clean_shard(clean, config.ssd_path, owner);
    if (config.ram_path)
        clean_shard(clean, config.ram_path, owner);
    config_fini(&config);
}

/* What is not named by a file that every state folder has may be anything. */
static bool is_state(int fd)
{
    static const char *const names[] = {"lock", "config", "catalog"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (faccessat(fd, names[i], F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    }
    return false;
}

static void unmount_control(const struct clean *clean, const char *state)
{
    CLEANUP_STR struct str path = STR_INIT, why = STR_INIT;
    struct attach_mount_info info;

    str_addf(&path, "%s/control", state);
    if (path.failed || clean->dry_run || attach_find(path.data, &info) < 0)
        return;
    free(info.source);
    attach_unmount(path.data, true, &why);
}

/* Why a state folder stays; NULL: it goes. On NULL the lock is held by *lock. */
static const char *reason_to_keep(const struct clean *clean, int fd, int *lock)
{
    *lock = openat(fd, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (*lock < 0 && young(fd, JUST_MADE))
        return "just made";
    if (*lock >= 0 && flock(*lock, LOCK_EX | LOCK_NB) < 0)
        return "its mount is up";
    return clean->older > 0 && young(fd, clean->older) ? "younger than --older" : NULL;
}

static void clean_state(struct clean *clean, const struct folder *f)
{
    CLEANUP_CLOSE int fd = folder_open(f), lock = -1;
    char path[PATH_MAX];

    if (fd < 0 || !is_state(fd))
        return;
    snprintf(path, sizeof path, "%s/%s", f->at, f->name);
    const char *keep = reason_to_keep(clean, fd, &lock);
    if (keep) {
        say(clean, "kept", path, keep);
        return;
    }
    unmount_control(clean, path);
    clean_shards_of(clean, path, f->st.st_uid);
    remove_folder(clean, f);
}

/* A shard in memory whose state folder is gone, or never named it. */
static void clean_orphan(struct clean *clean, const struct folder *f)
{
    CLEANUP_CLOSE int fd = folder_open(f);
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", f->at, f->name);
    if (fd < 0)
        return;
    if (shard_locked(fd))
        say(clean, "kept", path, "in use");
    else if (young(fd, clean->older > JUST_MADE ? clean->older : JUST_MADE))
        say(clean, "kept", path, "just used");
    else
        remove_folder(clean, f);
}

static void clean_parent(struct clean *clean, const char *at, void (*each)(struct clean *, const struct folder *))
{
    CLEANUP_CLOSEDIR DIR *dir = opendir(at);
    struct dirent *d;

    while (dir && (d = readdir(dir))) {
        struct folder f = {.parent = dirfd(dir), .at = at, .name = d->d_name};
        if (named_like_ours(d->d_name) && fstatat(f.parent, f.name, &f.st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(f.st.st_mode) && may_remove(f.st.st_uid))
            each(clean, &f);
    }
}

static int clean_mount(void *user, const struct live *live)
{
    struct clean *clean = user;
    CLEANUP_STR struct str why = STR_INIT;

    if (live->health != LIVE_DEAD)
        return 0;
    int error = clean->dry_run ? 0 : attach_unmount(live->mountpoint, true, &why);
    if (error) {
        command_fail("%s", why.length > 0 ? why.data : strerror(-error));
        clean->failed++;
    } else {
        say(clean, "removed", live->mountpoint, "a mount whose processes were gone");
        clean->removed++;
    }
    return 0;
}

/* A folder is cleaned once, also where two variables name the same. */
static void clean_parents(struct clean *clean)
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
            clean_parent(clean, seen[i], clean_state);
    }
    for (int i = 0; i < PARENTS; i++)
        free(seen[i]);
}

static int clean_all(struct clean *clean)
{
    int error = live_each(clean_mount, clean);

    if (error)
        return command_fail("list the mounts: %s", strerror(-error));
    clean_parents(clean);
    clean_parent(clean, "/dev/shm", clean_orphan);
    if (clean->removed == 0 && clean->failed == 0)
        printf("nothing to remove\n");
    return clean->failed > 0 ? command_fail("%d could not be removed", clean->failed) : COMMAND_DONE;
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        {"older", required_argument, NULL, 'o'}, {"dry-run", no_argument, NULL, 'n'}, {0}};
    struct clean clean = {0};
    int option;

    while ((option = getopt_long(argc, argv, ":n", options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return command_bad_option(&command_clean, option, argv);
        if (option == 'o' && duration_parse(optarg, &clean.older) < 0)
            return command_usage(&command_clean, "--older %s: not a time", optarg);
        clean.dry_run |= option == 'n';
    }
    if (optind < argc)
        return command_usage(&command_clean, "an argument too many: %s", argv[optind]);
    return clean_all(&clean);
}

const struct command command_clean = {
    .name = "clean",
    .arguments = "[-n] [--older TIME]",
    .summary = "remove what mounts that are no longer up have left",
    .help = "  -n, --dry-run   say what would be removed\n"
            "  --older TIME    only what was not used for so long (7d, 12h)\n",
    .run = run,
};
