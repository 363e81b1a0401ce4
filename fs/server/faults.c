/* Faults for the crash tests.
 *
 * Threads: any; nothing is written after faults_apply. */
#include "fs/server/faults.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"

#include <fnmatch.h>
#include <string.h>

static struct {
    const struct mount_config *config;
    char *abort_read, *stuck_lookup;
    struct fuse_lowlevel_ops ops;
} faults;

static bool is_named(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    const struct data_mount *m = fuse_req_userdata(req);
    size_t length;
    return ino <= catalog_inodes(m->catalog) && strcmp(catalog_name(m->catalog, ino, &length), name) == 0;
}

static void aborting_init(void *user, struct fuse_conn_info *conn)
{
    (void)user;
    (void)conn;
    abort();
}

static void aborting_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    if (is_named(req, ino, faults.abort_read))
        abort();
    data_ops.read(req, ino, size, offset, fi);
}

static void stuck_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    if (parent == CATALOG_ROOT && fnmatch(faults.stuck_lookup, name, 0) == 0) {
        CLEANUP_STR struct str path = STR_INIT;
        struct stat st;
        str_addf(&path, "%s/%s", faults.config->mountpoint, name);
        if (!path.failed && lstat(path.data, &st) == 0)
            log_warning("stuck_lookup: nothing was stuck");
    }
    data_ops.lookup(req, parent, name);
}

static void fault_apply(const char *fault, const char *value)
{
    if (strcmp(fault, "abort_start") == 0)
        abort();
    while (strcmp(fault, "hang_start") == 0)
        pause();
    if (strcmp(fault, "abort_init") == 0)
        faults.ops.init = aborting_init;
    if (strcmp(fault, "abort_read") == 0 && value) {
        faults.abort_read = strdup(value);
        faults.ops.read = faults.abort_read ? aborting_read : data_ops.read;
    }
    if (strcmp(fault, "stuck_lookup") == 0 && value) {
        faults.stuck_lookup = strdup(value);
        faults.ops.lookup = faults.stuck_lookup ? stuck_lookup : data_ops.lookup;
    }
}

const struct fuse_lowlevel_ops *faults_apply(const struct mount_config *config, uint32_t generation)
{
    faults.config = config;
    faults.ops = data_ops;
    const char *wanted = getenv("DEALFS_FAULTS");
    CLEANUP_FREE char *list = wanted ? strdup(wanted) : NULL;
    char *rest = list;
    for (char *fault; rest && (fault = strsep(&rest, ",")) != NULL;) {
        char *at = strrchr(fault, '@');
        if (at)
            *at++ = '\0';
        char *value = strchr(fault, '=');
        if (value)
            *value++ = '\0';
        if (!at || strtoul(at, NULL, 10) == generation)
            fault_apply(fault, value);
    }
    return &faults.ops;
}
