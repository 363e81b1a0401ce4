/* dealfs enter: run a command where the mount of a `dealfs run` is seen. */
#include "cli/base/command.h"
#include "cli/live/client.h"
#include "cli/mount/namespace.h"

#include <string.h>

static int enter_command(int argc, char **argv)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct live live;
    int command = argc > 2 && strcmp(argv[2], "--") == 0 ? 3 : 2;
    if (argc > 1 && argv[1][0] == '-')
        return command_usage(&command_enter, "option %s: unknown option", argv[1]);
    if (command >= argc)
        return command_usage(&command_enter, "a MOUNTPOINT and a command are needed");
    if (client_find(argv[1], LIVE_ELSEWHERE, &live))
        return COMMAND_FAILED;
    int error = live.health == LIVE_ELSEWHERE ? namespace_enter(live.keeper, &why) : 0;
    live_fini(&live);
    if (error)
        return command_fail("enter %s: %s", argv[1], command_why(&why, error));
    return command_execute(argv + command);
}

const struct command command_enter = {
    .name = "enter",
    .arguments = "MOUNTPOINT -- COMMAND…",
    .summary = "run a command in the namespace of a `dealfs run`",
    .help = "",
    .run = enter_command,
};
