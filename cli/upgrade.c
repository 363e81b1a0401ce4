/* `dealfs upgrade`: replaces the server of a live mount by the installed program. The keeper does it, and returns to
 * the previous program if the new one does not live (fs/keeper/program.h); this command sends the request and waits. */
#include "cli/base/command.h"

#include "cli/live/client.h"
#include "cli/live/figures.h"
#include "fs/base/clock.h"
#include "fs/base/json.h"

#include <errno.h>
#include <string.h>

enum { UPGRADE_S = 120, PAUSE_MS = 50 };

static bool is_over(const struct str *status)
{
    return !figures_is(status, "program", "asked") && !figures_is(status, "program", "trial");
}

/* The status after the upgrade. */
static int await_end(const struct live *live, struct str *status)
{
    uint64_t deadline = clock_now() + UPGRADE_S * SECOND;
    int error;
    do {
        clock_sleep(PAUSE_MS * MILLISECOND);
        str_clear(status);
        error = client_file(live, "status", status);
    } while ((error || !is_over(status)) && clock_now() < deadline);
    return error ? error : is_over(status) ? 0 : -ETIMEDOUT;
}

static int report(const struct live *live, const struct str *before, const struct str *after)
{
    CLEANUP_STR struct str line = STR_INIT;
    bool installed = figures_is(after, "program", "installed");
    if (installed)
        figures_add(&line, before, "dealfs {version text} -> ");
    if (figures_is(after, "program", "previous"))
        figures_add(&line, after, "the server of the installed program {restarts.last.0.cause text}: ");
    if (figures_is(after, "program", "refused"))
        str_adds(&line, "the installed dealfs-server is missing, or other users may write it: ");
    figures_add(&line, after, installed ? "{version text}" : "dealfs {version text} still runs; see `dealfs log`");
    if (installed && figures_is(before, "state", "joined") && !figures_is(after, "state", "joined"))
        str_adds(&line, ". The node left its world: run `dealfs join` of the new version on all nodes");
    if (line.failed || !installed)
        return command_fail("upgrade %s: %s", live->mountpoint, command_why(&line, -ENOMEM));
    printf("%s: %s\n", live->mountpoint, line.data);
    return COMMAND_DONE;
}

static int upgrade_live(const struct live *live)
{
    CLEANUP_STR struct str before = STR_INIT, after = STR_INIT, request = STR_INIT, reply = STR_INIT, why = STR_INIT;
    str_adds(&request, "upgrade\n");
    int error = client_file(live, "status", &before);
    if (!error)
        error = client_send(live, &request, &reply, &why);
    if (error)
        return command_fail("upgrade %s: %s", live->mountpoint, command_why(&why, error));
    if (strcmp(reply.data, "current\n") == 0) {
        figures_add(&after, &before, "dealfs {version text} is the installed version: nothing to do");
        printf("%s: %s\n", live->mountpoint, after.failed ? "nothing to do" : after.data);
        return COMMAND_DONE;
    }
    error = await_end(live, &after);
    if (error)
        return command_fail("upgrade %s: its end was not seen: %s", live->mountpoint, strerror(-error));
    return report(live, &before, &after);
}

static int upgrade_command(int argc, char **argv)
{
    int status = COMMAND_DONE;
    if (argc < 2 || argv[1][0] == '-')
        return command_usage(&command_upgrade, "at least one MOUNTPOINT is needed");
    for (int i = 1; i < argc; i++) {
        CLEANUP_LIVE struct live live = {0};
        int one = client_find(argv[i], LIVE_UP, &live);
        if (one == COMMAND_DONE)
            one = upgrade_live(&live);
        if (one != COMMAND_DONE)
            status = one;
    }
    return status;
}

const struct command command_upgrade = {
    .name = "upgrade",
    .arguments = "MOUNTPOINT…",
    .summary = "replace the server of a live mount by the installed version",
    .help = "Readers wait a moment, and nothing fails. A version that does not work is replaced by the previous one.\n",
    .run = upgrade_command,
};
