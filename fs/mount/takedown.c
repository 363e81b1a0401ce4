/* Take away what a mount leaves. */
#include "fs/mount/takedown.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/mount/attach.h"

#include <fcntl.h>
#include <string.h>

/* Device numbers are used again at once: by the time that a server has stored what it held, another mount may stand on
 * the same path under the same number. The source tells them apart; two of one source share a state and its lock. */
static bool find(const struct mount_config *config, const char *path, unsigned *minor)
{
    struct attach_mount_info info = {0};
    if (attach_find(path, &info))
        return false;
    bool ours = strncmp(info.type, "fuse.dealfs", strlen("fuse.dealfs")) == 0 || strcmp(info.type, "fuse") == 0;
    ours = ours && strcmp(info.source, config->source) == 0;
    *minor = info.minor;
    free(info.source);
    return ours;
}

void takedown_learn(const struct mount_config *config, struct handover *h)
{
    unsigned minor;
    if (find(config, config->mountpoint, &minor))
        h->data_minor = minor;
    if (find(config, config->control, &minor))
        h->control_minor = minor;
    atomic_store(&h->minors_known, 1);
}

static void unmount(const struct mount_config *config, const char *path, unsigned expected)
{
    unsigned minor;
    if (!expected || !find(config, path, &minor) || minor != expected)
        return;
    CLEANUP_STR struct str why = STR_INIT;
    if (attach_unmount(path, true, &why))
        log_error("%s", why.data ? why.data : "unmount: out of memory");
}

void takedown_unmount(const struct mount_config *config, const struct handover *h)
{
    CLEANUP_STR struct str nested = STR_INIT;
    str_addf(&nested, "%s/.dealfs", config->mountpoint);
    if (!nested.failed)
        unmount(config, nested.data, h->control_minor);
    unmount(config, config->control, h->control_minor);
    unmount(config, config->mountpoint, h->data_minor);
}

void takedown_abort(const struct handover *h)
{
    if (h->data_minor)
        attach_abort(h->data_minor);
    if (h->control_minor)
        attach_abort(h->control_minor);
}

static void warn(const char *what, const char *path, int error)
{
    CLEANUP_STR struct str name = STR_INIT;
    str_add_printable(&name, path, strlen(path));
    log_warning("%s %s: %s", what, name.data ? name.data : "", strerror(error));
}

void takedown_files(const struct mount_config *config)
{
    if (config->ram_path) {
        int error = dir_remove_tree(AT_FDCWD, config->ram_path);
        if (error && error != -ENOENT)
            warn("remove", config->ram_path, -error);
    }
    CLEANUP_STR struct str courier = STR_INIT;
    str_addf(&courier, "%s/courier", config->state);
    if (!courier.failed && unlink(courier.data) && errno != ENOENT)
        warn("remove", courier.data, errno);
    size_t state = strlen(config->state);
    bool in_state = strncmp(config->control, config->state, state) == 0 && config->control[state] == '/';
    if (in_state && rmdir(config->control) && errno != ENOENT)
        warn("remove", config->control, errno);
}
