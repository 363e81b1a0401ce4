/* dealfs enter: run a command where the mount of a `dealfs run` is seen. */
#include "cli/command.h"
#include "cli/live.h"
#include "cli/namespace.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

static int go_in(const struct live *live, struct str *why)
{
    switch (live->health) {
    case LIVE_UP: /* it is seen here already */
        return 0;
    case LIVE_ELSEWHERE:
        return namespace_enter(live->keeper, why);
    default:
        str_addf(why, "%s", live_health_text(live->health));
        return -EIO;
    }
}

static int run(int argc, char **argv)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct live live;

    int command = argc > 2 && strcmp(argv[2], "--") == 0 ? 3 : 2;
    if (argc > 1 && argv[1][0] == '-')
        return command_usage(&command_enter, "option %s: is not known", argv[1]);
    if (command >= argc)
        return command_usage(&command_enter, "a MOUNTPOINT and a command are needed");
    if (live_find(argv[1], &live, &why))
        return command_fail("%s", why.failed ? "out of memory" : why.data);
    int error = go_in(&live, &why);
    live_fini(&live);
    if (error)
        return command_fail("enter %s: %s", argv[1], why.failed ? "out of memory" : why.data);
    execvp(argv[command], argv + command);
    error = errno;
    command_fail("run %s: %s", argv[command], strerror(error));
    return error == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
}

const struct command command_enter = {
    .name = "enter",
    .arguments = "MOUNTPOINT -- COMMAND…",
    .summary = "run another command where a `dealfs run` has its mount",
    .help = "",
    .run = run,
};
