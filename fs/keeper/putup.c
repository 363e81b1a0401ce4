/* Put the two mounts in their places. */
#include "fs/keeper/putup.h"

#include "fs/attach/attach.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/base/process.h"
#include "fs/wire/handover.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>

/* A 10 MiB file is then read in 1 MiB requests, not in 128 KiB ones. May be refused: it is only for speed. */
static void raise_read_ahead(unsigned minor)
{
    static const char kibibytes[] = "1024\n";
    char path[64];

    snprintf(path, sizeof path, "/sys/class/bdi/0:%u/read_ahead_kb", minor);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        file_write_all(fd, kibibytes, sizeof kibibytes - 1);
}

/* From FD_DATA_MOUNT and FD_CONTROL_MOUNT. On failure both are as before. */
static int put_both(const struct mount_config *config, struct str *why)
{
    CLEANUP_STR struct str ignored = STR_INIT;

    raise_read_ahead(config->data_minor);
    raise_read_ahead(config->control_minor); /* decoded pictures are as large as files */
    if (!handover_has(FD_DATA_MOUNT))
        return 0; /* fusermount3 has put them up */
    int error = attach_put(FD_DATA_MOUNT, config->mountpoint, why);
    if (error)
        return error;
    if (!config->nested)
        error = attach_put(FD_CONTROL_MOUNT, config->control, why);
    else if (!(error = process_become_mounter(config->owner_uid, config->owner_gid)))
        error = attach_nest(FD_CONTROL_MOUNT, FD_DATA_MOUNT, why);
    if (error)
        attach_unmount(config->mountpoint, config->data_minor, true, &ignored);
    return error;
}

pid_t putup_start(const struct mount_config *config)
{
    pid_t child = fork();
    if (child < 0)
        log_error("fork: %s", strerror(errno));
    if (child != 0)
        return child;
    CLEANUP_STR struct str why = STR_INIT;
    prctl(PR_SET_NAME, "dealfs-putup");
    handover_let_go(true);
    int error = put_both(config, &why);
    if (error)
        handover_tell(why.failed || !why.data ? strerror(-error) : why.data);
    _exit(error != 0);
}
