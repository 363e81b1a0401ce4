/* Attaches the two mounts to their mountpoints. */
#include "fs/keeper/putup.h"

#include "fs/attach/mounter.h"
#include "fs/attach/pair.h"
#include "fs/base/log.h"
#include "fs/wire/handover.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

static int put_both(const struct mount_config *config, struct str *why)
{
    const struct pair pair = pair_of(config);
    bool held = handover_has(FD_DATA_MOUNT); /* otherwise fusermount3 has attached them */
    if (handover_has(FD_MOUNTER))
        return mounter_do(FD_MOUNTER, MOUNTER_PUT, 0, why);
    return pair_put(&pair, held ? FD_DATA_MOUNT : -1, held ? FD_CONTROL_MOUNT : -1, why);
}

pid_t putup_start(const struct mount_config *config)
{
    pid_t keeper = getpid(), child = fork();
    if (child < 0)
        log_error("fork: %s", strerror(errno));
    if (child != 0)
        return child;
    CLEANUP_STR struct str why = STR_INIT;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the next keeper removes only what is attached when it starts */
    prctl(PR_SET_NAME, "dealfs-putup");
    if (getppid() != keeper)
        _exit(1);
    handover_let_go(true);
    int error = put_both(config, &why);
    if (error)
        handover_tell(why.failed || !why.data ? strerror(-error) : why.data);
    _exit(error != 0);
}
