/* Device numbers are reused at once: when a server has stored its data, another mount may have the same path and
 * number. So type, source and user are compared as well. */
#include "fs/attach/pair.h"

#include "fs/attach/attach.h"
#include "fs/attach/mount-health.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/base/process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/wait.h>

struct pair pair_of(const struct mount_config *c)
{
    return (struct pair){c->mountpoint,    c->control,   c->source,    c->nested,   c->data_minor,
                         c->control_minor, c->owner_uid, c->owner_gid, c->readahead};
}

/* With 1 MiB, a 10 MiB file is read in requests of that size instead of 128 KiB, the maximum that the kernel allows
 * users. A failure only costs speed. */
static void set_readahead(unsigned minor, uint64_t bytes)
{
    char path[64], kibibytes[24];
    int n = snprintf(kibibytes, sizeof kibibytes, "%" PRIu64 "\n", bytes >> 10);
    snprintf(path, sizeof path, "/sys/class/bdi/0:%u/read_ahead_kb", minor);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        file_write_all(fd, kibibytes, (size_t)n);
}

struct nesting {
    const struct pair *pair;
    int data, control;
};

static int become_and_nest(const void *nesting)
{
    const struct nesting *n = nesting;
    CLEANUP_STR struct str ignored = STR_INIT;
    int error = process_become_mounter(n->pair->uid, n->pair->gid);
    return error ? error : attach_nest(n->control, n->data, &ignored);
}

/* Without allow_other, only its user may look up names in a FUSE mount: so a child becomes that user, but keeps the
 * right to mount. It waits for a server only for a limited time. */
static int nest_as_user(const struct pair *p, int data, int control, struct str *why)
{
    enum { NEST_S = 20 };
    if (p->uid == geteuid())
        return attach_nest(control, data, why);
    int error = process_do_in_child(become_and_nest, &(struct nesting){p, data, control}, NEST_S);
    if (error)
        str_addf(why, "mount on .dealfs of the new mount: %s", strerror(-error));
    return error;
}

int pair_put(const struct pair *p, int data, int control, struct str *why)
{
    CLEANUP_STR struct str ignored = STR_INIT;
    set_readahead(p->data_minor, p->readahead);
    set_readahead(p->control_minor, READAHEAD_MOST); /* decoded images are as large as files */
    if (data < 0)
        return 0;
    int error = attach_put(data, p->mountpoint, why);
    if (error)
        return error;
    error = p->nested ? nest_as_user(p, data, control, why) : attach_put(control, p->control, why);
    if (error)
        attach_unmount(p->mountpoint, p->data_minor, true, &ignored);
    return error;
}

struct find_ours {
    const struct pair *pair;
    const char *path; /* where it was mounted */
    unsigned minor;
    char *found; /* where it is now */
};

/* A folder on the path may have been renamed from another mount namespace, so the path is only preferred. */
static int find_ours(void *user, const char *path, const struct attach_mount_info *info)
{
    struct find_ours *f = user;
    bool ours = strncmp(info->type, "fuse.dealfs", strlen("fuse.dealfs")) == 0 || strcmp(info->type, "fuse") == 0;
    ours = ours && strcmp(info->source, f->pair->source) == 0 && info->minor == f->minor && info->uid == f->pair->uid;
    if (!ours || (f->found && strcmp(path, f->path) != 0))
        return 0;
    free(f->found);
    f->found = strdup(path);
    return f->found ? 0 : -ENOMEM;
}

/* NULL and `error` 0: it is not mounted. The caller frees the path. */
static char *find_mounted(const struct pair *p, const char *path, unsigned minor, int *error)
{
    struct find_ours f = {p, path, minor, NULL};
    *error = minor ? attach_each(NULL, find_ours, &f) : 0;
    if (*error)
        log_error("unmount %s: read the mount table: %s", path, strerror(-*error));
    return f.found;
}

static int take_one(const struct pair *p, const char *path, unsigned minor)
{
    CLEANUP_STR struct str why = STR_INIT;
    int error;
    CLEANUP_FREE char *found = find_mounted(p, path, minor, &error);
    if (error || !found)
        return error;
    error = attach_unmount(found, minor, true, &why);
    if (error)
        log_error("%s", why.data ? why.data : "unmount: out of memory");
    return error;
}

int pair_take(const struct pair *p, bool spare)
{
    /* otherwise it is removed with the data mount */
    int control = p->nested ? 0 : take_one(p, p->control, p->control_minor);
    int data = spare ? 0 : take_one(p, p->mountpoint, p->data_minor);
    return data ? data : control;
}

static int ask_server(const void *pair)
{
    const struct pair *p = pair;
    CLEANUP_STR struct str ignored = STR_INIT;
    struct statfs fs;
    int error = process_become_mounter(p->uid, p->gid);
    CLEANUP_CLOSE int fd = error ? error : attach_open(p->mountpoint, p->data_minor, &ignored);
    return fd < 0 ? fd : fstatfs(fd, &fs) < 0 ? -errno : 0;
}

/* A child process looks, because its server may never answer; with the rights of the user, because only that user may
 * look into the mount. */
static int ask_in_child(const struct pair *p, unsigned minor)
{
    enum { LOOK_S = 5 };
    struct pair looked = *p;
    looked.data_minor = minor;
    return process_do_in_child(ask_server, &looked, LOOK_S);
}

static enum mount_health health_of(const struct pair *p, unsigned minor)
{
    return mount_health_of(ask_in_child(p, minor));
}

/* A number without its mount may belong to another mount by now. */
static void abort_one(const struct pair *p, const char *path, unsigned minor)
{
    int error;
    CLEANUP_CLOSE int connection = attach_connection(minor);
    CLEANUP_FREE char *found = find_mounted(p, path, minor, &error);
    if (found)
        error = connection < 0 ? connection : attach_abort(connection);
    if (found && error)
        log_error("end the requests of %s: %s", found, strerror(-error));
}

bool pair_abort(const struct pair *p)
{
    if (!p->data_minor || health_of(p, p->data_minor) != MOUNT_HANGS)
        return false;
    abort_one(p, p->mountpoint, p->data_minor);
    abort_one(p, p->control, p->control_minor);
    return true;
}

int pair_clear(const struct pair *p)
{
    CLEANUP_STR struct str ignored = STR_INIT;
    enum { STACKED = 8 };
    struct attach_mount_info info;
    CLEANUP_CLOSE int place = attach_open(p->mountpoint, 0, &ignored);
    if (place < 0)
        return place;
    for (int i = 0; i < STACKED; i++) {
        int error = attach_find(p->mountpoint, &info);
        if (error)
            return error == -ENOENT ? 0 : error;
        free(info.source);
        if (strcmp(info.type, "fuse.dealfs") != 0)
            return 0;
        if (info.uid != p->uid)
            return -EBUSY;
        if (health_of(p, info.minor) != MOUNT_DEAD)
            break;
        error = attach_unmount(p->mountpoint, info.minor, true, &ignored);
        if (error)
            return error;
        log_warning("a dead mount was removed");
    }
    return -EEXIST;
}

int pair_below(const struct pair *p, unsigned *minor, struct str *why)
{
    struct attach_mount_info info;
    int error = attach_find(p->mountpoint, &info);
    *minor = 0;
    if (error)
        return error == -ENOENT ? 0 : str_fail(why, error, "read the mount table: %s", strerror(-error));
    *minor = info.minor;
    free(info.source);
    return 0;
}

int pair_adopt(struct pair *p)
{
    struct attach_mount_info info;
    int error = attach_find(p->mountpoint, &info);
    if (error)
        return error;
    if (strcmp(info.type, "fuse.dealfs") != 0 || info.uid != p->uid) {
        free(info.source);
        return -ENOENT;
    }
    p->source = info.source;
    p->data_minor = info.minor;
    return 0;
}
