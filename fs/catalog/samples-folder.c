/* The files of sample lists: read when a server starts, written when a list is put. */
#include "fs/catalog/samples-folder.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/catalog/samples-inside.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

bool samples_folder_name(const char *name)
{
    size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    return n >= 1 && n <= SAMPLES_NAME && name[n] == '\0' && name[0] != '.';
}

static char *path_of(const struct samples_folder *folder, const char *name)
{
    struct str path = STR_INIT;
    str_addf(&path, "%s/%s", folder->path, name);
    return str_steal(&path);
}

static const char *load_error_text(int error)
{
    return error == -ESTALE    ? "not loaded: it belongs to an earlier state of the dataset. Upload it again"
           : error == -EBADMSG ? "not loaded: the file is damaged. Upload it again"
           : error == -EPROTO  ? "not loaded: another version of dealfs wrote it. Upload it again"
                               : strerror(-error);
}

/* 1: it is skipped. */
static int load_one(const struct samples_folder *folder, const char *name, struct samples **list, uint64_t *version)
{
    CLEANUP_FREE char *path = path_of(folder, name);
    int error = path ? samples_load(folder->catalog, path, list, version) : -ENOMEM;
    if (error && error != -ENOMEM)
        log_warning("sample list %s: %s", path, load_error_text(error));
    if (error)
        return error == -ENOMEM ? error : 1;
    if (samples_count(*list) == 0)
        samples_put(steal_pointer(*list));
    *version += *version == 0;
    return 0;
}

/* A temporary file of a server that died (file_write_atomic). */
static bool is_half_written(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && name[n - 1] == '~';
}

/* If the state directory is gone, it is not created again: then lists are not stored. */
static DIR *open_folder(struct samples_folder *folder)
{
    DIR *d = mkdir(folder->path, 0700) == 0 || errno == EEXIST ? opendir(folder->path) : NULL;
    if (!d) {
        log_warning("save sample lists in %s: %s: they are lost when the server ends", folder->path, strerror(errno));
        free(steal_pointer(folder->path));
    }
    return d;
}

int samples_folder_open(struct samples_folder *folder, const struct catalog *catalog, const char *path,
                        int (*show)(void *user, const char *name, uint64_t version, struct samples *list), void *user)
{
    *folder = (struct samples_folder){catalog, strdup(path)};
    if (!folder->path)
        return -ENOMEM;
    CLEANUP_CLOSEDIR DIR *d = open_folder(folder);
    int error = 0;
    for (struct dirent *e; d && error >= 0 && (e = readdir(d));) {
        struct samples *list = NULL;
        uint64_t version;
        if (is_half_written(e->d_name))
            unlinkat(dirfd(d), e->d_name, 0);
        if (!samples_folder_name(e->d_name) || samples_built_in(e->d_name))
            continue;
        error = load_one(folder, e->d_name, &list, &version);
        if (!error)
            error = show(user, e->d_name, version, list);
    }
    return error < 0 ? error : 0;
}

int samples_folder_keep(const struct samples_folder *folder, const char *name, uint64_t version, struct samples *s,
                        struct samples **kept)
{
    if (!folder->path)
        return samples_hold(s, version, kept);
    CLEANUP_FREE char *path = path_of(folder, name);
    int error = path ? samples_save(s, version, path) : -ENOMEM;
    return error ? error : samples_load(folder->catalog, path, kept, &version);
}

void samples_folder_delete(const struct samples_folder *folder, const char *name)
{
    CLEANUP_FREE char *path = folder->path ? path_of(folder, name) : NULL;
    if (path && unlink(path) && errno != ENOENT)
        log_warning("remove the sample list %s: %s", path, strerror(errno));
}
