/* The pending signals of a thread, from /proc. */
#include "fs/mount/control/waiting.h"

#include "fs/base/cleanup.h"

#include <inttypes.h>
#include <signal.h>
#include <stdint.h>

static uint64_t bit(int number)
{
    return UINT64_C(1) << (number - 1);
}

bool waiting_gave_up(pid_t thread)
{
    const uint64_t wanted = bit(SIGKILL) | bit(SIGINT) | bit(SIGTERM) | bit(SIGQUIT) | bit(SIGHUP);
    char path[32], line[128];
    uint64_t pending;

    if (thread <= 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/status", (int)thread);
    CLEANUP_FCLOSE FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status))
        if ((sscanf(line, "SigPnd: %" SCNx64, &pending) == 1 || sscanf(line, "ShdPnd: %" SCNx64, &pending) == 1) &&
            pending & wanted)
            return true;
    return false;
}
