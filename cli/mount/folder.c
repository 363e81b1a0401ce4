/* Our folders: names, creation, and checks. */
#include "cli/mount/folder.h"

#include "cli/base/place.h"
#include "cli/base/way.h"
#include "fs/attach/attach.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

static void add_hash(struct str *out, const struct folder_key *key)
{
    CLEANUP_STR struct str text = STR_INIT;
    char digits[DIGEST_TEXT];
    const char *const parts[] = {key->user, key->host, key->cache_id ? "" : key->source,
                                 key->cache_id ? key->cache_id : ""};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        str_add(&text, parts[i], strlen(parts[i]) + 1);
    if (text.failed) {
        out->failed = true;
        return;
    }
    struct digest digest = hash128(text.data, text.length, 0);
    str_add(out, digest_format(&digest, digits), 16);
}

/* Replaces characters of a user's name that a file name cannot have. */
static void add_plain(struct str *out, const char *text)
{
    for (; *text; text++)
        str_add(out, *text == '/' ? "_" : text, 1);
}

void folder_add_name(struct str *out, const struct folder_key *key)
{
    str_adds(out, "dealfs-");
    add_plain(out, key->user);
    str_adds(out, "-");
    add_plain(out, key->host);
    str_adds(out, "-");
    add_hash(out, key);
}

void folder_add_short_name(struct str *out, const struct folder_key *key)
{
    str_adds(out, "dealfs-");
    add_hash(out, key);
}

/* Another user could replace a directory of root's while root writes to it. */
const char *folder_state_parent(void)
{
    static const char *const names[] = {"SLURM_TMPDIR", "TMPDIR"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        struct stat st;
        if (value && *value && stat(value, &st) == 0 && S_ISDIR(st.st_mode) &&
            (geteuid() != 0 || way_is_roots_alone(value)))
            return value;
    }
    return "/var/tmp";
}

DIR *folder_list(int folder)
{
    CLEANUP_CLOSE int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    if (dir)
        steal_fd(copy);
    return dir;
}

static int make_with_parents(const char *path, bool *made)
{
    CLEANUP_FREE char *parent = strdup(path);
    char *slash = parent ? strrchr(parent, '/') : NULL;
    if (!parent)
        return -ENOMEM;
    *made = mkdir(path, 0700) == 0;
    if (*made || errno == EEXIST)
        return 0;
    if (errno != ENOENT || !slash || slash == parent)
        return -errno;
    *slash = '\0';
    int error = dir_make(parent, 0755);
    if (error)
        return error;
    *made = mkdir(path, 0700) == 0;
    return *made || errno == EEXIST ? 0 : -errno;
}

/* Is it empty, or does it contain the mark? */
static bool has_only_ours(int fd, const char *mark)
{
    CLEANUP_CLOSEDIR DIR *d = folder_list(fd);
    struct dirent *e;
    if (!d)
        return false;
    if (faccessat(fd, mark, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    while ((e = readdir(d)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            return false;
    return true;
}

static int check_ours(const struct folder_wish *w, int fd, const char *path, struct str *why)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return place_error(why, w->what, path, -errno);
    if (st.st_uid != w->uid) {
        place_name(why, w->what, path);
        return str_fail(why, -EPERM, "belongs to another user (uid %u)", (unsigned)st.st_uid);
    }
    if (w->mark && !has_only_ours(fd, w->mark))
        return place_fail(why, w->what, path, "contains files of other programs: choose an empty or a new directory",
                          -EEXIST);
    return 0;
}

static int take_over(const struct folder_wish *w, int fd, const char *path, bool made, struct str *why)
{
    if (made && geteuid() == 0 && (w->uid != 0 || w->gid != getegid()) && fchown(fd, w->uid, w->gid) < 0)
        return place_error(why, w->what, path, -errno);
    int error = check_ours(w, fd, path, why);
    if (error)
        return error;
    if (fchmod(fd, 0700) < 0)
        return place_error(why, w->what, path, -errno);
    int network = attach_on_network(path);
    if (network > 0)
        return place_fail(why, w->what, path, "is on a network file system; it must be on a disk of this machine",
                          -EINVAL);
    return place_error(why, w->what, path, network);
}

int folder_make(const struct folder_wish *w, const char *path, bool *made, struct str *why)
{
    int error = make_with_parents(path, made);
    if (error)
        return place_error(why, w->what, path, error);
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        error = -errno;
        struct stat st;
        bool link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
        return place_fail(why, w->what, path, link ? "is a symlink" : strerror(-error), error);
    }
    error = take_over(w, fd, path, *made, why);
    if (error && *made) {
        rmdir(path);
        *made = false;
    }
    return error;
}

int folder_id(const char *state, char text[DIGEST_TEXT], struct str *why)
{
    CLEANUP_FREE char *path = place_join(state, "id");
    CLEANUP_STR struct str kept = STR_INIT;
    struct digest id;
    if (!path)
        return -ENOMEM;
    if (file_read(AT_FDCWD, path, DIGEST_TEXT, &kept) == 0 && kept.length == DIGEST_TEXT) {
        kept.data[DIGEST_TEXT - 1] = '\0';
        if (digest_parse(kept.data, &id) == 0) {
            digest_format(&id, text);
            return 0;
        }
    }
    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
        return place_fail(why, "make an id for", state, strerror(errno), -EIO);
    char line[DIGEST_TEXT + 1];
    snprintf(line, sizeof line, "%s\n", digest_format(&id, text));
    return place_error(why, "write", path, file_write_atomic(AT_FDCWD, path, line, DIGEST_TEXT, 0600));
}
