/* dealfs enter: run a command in the namespace of a `dealfs run`. */
#include "cli/base/command.h"
#include "cli/live/client.h"
#include "cli/mount/namespace.h"
#include "fs/attach/attach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Another file system may be mounted there, below the mount to come. */
static bool is_mounted(const struct live *live)
{
    struct attach_mount_info info;
    if (attach_find(live->mountpoint, &info))
        return false;
    free(info.source);
    return info.major == 0 && info.minor == live->config.data_minor;
}

/* Namespace and keeper exist before the mount does. */
static int enter_mount(const struct live *live, struct str *why)
{
    if (live->health != LIVE_ELSEWHERE)
        return 0;
    int error = namespace_enter(live->keeper, why);
    if (!error && !is_mounted(live))
        error = str_fail(why, -EAGAIN, "nothing is mounted there yet: wait for it with `dealfs wait`");
    return error;
}

static int enter_command(int argc, char **argv)
{
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_LIVE struct live live = {0};
    int command = argc > 2 && strcmp(argv[2], "--") == 0 ? 3 : 2;
    if (argc > 1 && argv[1][0] == '-')
        return command_usage(&command_enter, "option %s: unknown option", argv[1]);
    if (command >= argc)
        return command_usage(&command_enter, "a MOUNTPOINT and a command are needed");
    if (client_find(argv[1], LIVE_ELSEWHERE, &live))
        return COMMAND_FAILED;
    int error = enter_mount(&live, &why);
    if (error)
        return command_fail("enter %s: %s", argv[1], command_why(&why, error));
    return command_execute(argv + command);
}

const struct command command_enter = {
    .name = "enter",
    .arguments = "MOUNTPOINT -- COMMAND…",
    .summary = "run a command in the namespace of a `dealfs run`",
    .run = enter_command,
};
