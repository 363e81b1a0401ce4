/* Checks with some files that a catalog belongs to this source: otherwise every read would fail later, without an
 * obvious reason. Comparing all files would be the scan that is to be avoided. */
#include "cli/mount/steps.h"

#include "cli/base/command.h"
#include "cli/base/place.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/size.h"
#include "fs/catalog/derived.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { LOOKS = 32 };

static bool is_same(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int fail_file(const struct start *s, const char *path, const char *reason, int error, struct str *why)
{
    place_name(why, "source", s->config.source);
    str_adds(why, "differs from the dataset of the world: ");
    str_add_printable(why, path, strlen(path));
    return str_fail(why, error, ": %s", reason);
}

static int check_file(const struct start *s, uint32_t file, char path[CATALOG_PATH_MAX], struct str *why)
{
    struct stat st;
    uint32_t object;
    if (catalog_path(s->catalog, catalog_file_ino(s->catalog, file), path, CATALOG_PATH_MAX) < 0)
        return 0;
    /* a network filesystem's cache may be older than what the world has seen */
    int error = state_look(s->source_fd, path, AT_SYMLINK_NOFOLLOW | AT_STATX_FORCE_SYNC, &st, &object);
    if (error)
        return error == -ENAMETOOLONG ? 0 : fail_file(s, path, strerror(-error), error, why);
    struct file_state want = catalog_state(s->catalog, file);
    struct file_state is = state_like(&want, catalog_notes(s->catalog)->acls, s->source_fd, path, &st, object);
    enum state_change change = S_ISREG(st.st_mode) ? state_compare(&want, &is) : STATE_SIZE;
    if (change <= STATE_EXCUSED)
        return 0;
    const char *reason = change == STATE_CTIME
                             ? "has another ctime here (between replicas of a source, use identity=mtime)"
                             : "has another size or time of change here";
    return fail_file(s, path, reason, -ESTALE, why);
}

static int check_source(const struct start *s, struct str *why)
{
    CLEANUP_FREE char *path = malloc(CATALOG_PATH_MAX);
    uint32_t files = catalog_files(s->catalog);
    int error = path ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < LOOKS && i < files && !error; i++) {
        uint32_t file = files <= LOOKS ? i : (uint32_t)((uint64_t)i * (files - 1) / (LOOKS - 1));
        error = check_file(s, file, path, why);
    }
    return error;
}

/* Its modes may give other users rights that an ACL denies. */
static int check_acls(const struct start *s, struct str *why)
{
    if (!s->options.allow_other || catalog_notes(s->catalog)->acls)
        return 0;
    return place_fail(why, "catalog", s->options.catalog,
                      "its scan ignored ACLs, which matter with allow_other: mount all nodes with allow_other, or none",
                      -EPERM);
}

/* A derived catalog of other nodes: it contains the catalog of the source. */
static int install_made(struct start *s, int from, const struct derived *made, const char *path)
{
    CLEANUP_FREE char *resized = place_join(s->config.state, "resized");
    s->resized_given = true;
    int error = !resized ? -ENOMEM : lseek(from, 0, SEEK_SET) < 0 ? -errno : file_copy_atomic(from, resized);
    return error ? error : derived_write_original(made, path);
}

static int open_and_check(struct start *s, const char *path, struct str *why)
{
    int error = catalog_open(path, &s->catalog);
    if (error)
        return place_fail(why, "catalog", s->options.catalog,
                          error == -EBADMSG ? "is damaged, or another version of dealfs wrote it" : strerror(-error),
                          error);
    error = check_acls(s, why);
    return error ? error : check_source(s, why);
}

/* `path`: the catalog of the previous mount, which stays if this one cannot be used. */
static int install_catalog(struct start *s, int from, const char *path, struct str *why)
{
    CLEANUP_FREE char *fresh = place_join(s->config.state, "catalog.given");
    struct derived *made;
    int error;
    if (!fresh)
        return -ENOMEM;
    if (s->options.resize && derived_open(from, &made) == 0) {
        error = install_made(s, from, made, fresh);
        derived_close(made);
    } else {
        error = file_copy_atomic(from, fresh);
    }
    if (error)
        return place_error(why, "copy to", fresh, error);
    error = open_and_check(s, fresh, why);
    if (!error && rename(fresh, path) < 0)
        error = place_error(why, "write", path, -errno);
    if (error)
        unlink(fresh);
    return error;
}

static void say_given(const struct start *s)
{
    CLEANUP_STR struct str line = STR_INIT;
    str_add_printable(&line, s->config.source, strlen(s->config.source));
    str_addf(&line, ": %u files, %s, as in the world's catalog", catalog_files(s->catalog),
             size_text(catalog_bytes(s->catalog)));
    if (!line.failed && s->options.local == 0)
        command_note(s->to, "%s", line.data);
}

int given_install(struct start *s, struct str *why)
{
    CLEANUP_FREE char *path = place_join(s->config.state, "catalog");
    CLEANUP_CLOSE int from = open(s->options.catalog, O_RDONLY | O_CLOEXEC);
    if (!path)
        return -ENOMEM;
    if (from < 0)
        return place_error(why, "catalog", s->options.catalog, -errno);
    int error = is_same(from, path) ? open_and_check(s, path, why) : install_catalog(s, from, path, why);
    if (!error)
        say_given(s);
    return error;
}
