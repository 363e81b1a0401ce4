/* dealfs umount: unmounts; with --world on all nodes. */
#include "cli/base/options.h"
#include "cli/live/client.h"
#include "cli/mount/unmount.h"
#include "fs/base/json.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

static int take_away(const struct live *live, bool lazy)
{
    CLEANUP_STR struct str why = STR_INIT;
    if (live->health == LIVE_ELSEWHERE)
        return command_fail(
            "%s: it is in a namespace of `dealfs run` (its keeper is process %d), and ends with that command",
            live->mountpoint, (int)live->keeper);
    int error = unmount_live(live, lazy, &why);
    if (!error)
        return COMMAND_DONE;
    if (error == -ETIMEDOUT && lazy) {
        command_note(stderr, "%s", why.data);
        return COMMAND_DONE;
    }
    return command_fail("%s", command_why(&why, 0));
}

/* Tell the other nodes. A mount that never joined others is its own world. A world that has lost a node and one that
 * has ended are both `degraded`: only the server that is asked to tell the others knows which. */
static int tell_world(const struct live *live, struct str *why)
{
    CLEANUP_STR struct str status = STR_INIT, state = STR_INIT, request = STR_INIT, reply = STR_INIT;
    str_adds(&request, "umount\n");
    int error = live->control ? client_file(live, "status", &status) : -ENOTCONN;
    if (!error)
        error = json_find_string(status.data, status.length, "state", &state);
    if (error)
        return str_fail(why, error, "its status cannot be read: %s", strerror(-error));
    if (strcmp(state.data, "alone") == 0)
        return 0;
    error = client_send(live, &request, &reply, why);
    if (error == -ENOTCONN) {
        str_clear(why);
        str_adds(why, "its world has ended");
    }
    return error;
}

static int umount_path(const char *mountpoint, bool lazy, bool world)
{
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_LIVE struct live live = {0};
    if (client_find(mountpoint, LIVE_DEAD, &live))
        return COMMAND_FAILED;
    int error = world ? tell_world(&live, &why) : 0;
    int status = take_away(&live, lazy);
    if (error && status == COMMAND_DONE)
        status = command_fail("umount --world %s: only this node is unmounted, the others could not be reached: %s",
                              live.mountpoint, command_why(&why, 0));
    return status;
}

struct umount_wish {
    bool lazy, world;
};

static int umount_command(int argc, char **argv)
{
    struct umount_wish wish = {0};
    int status = command_options(&command_umount, &wish, argc, argv);
    if (status)
        return status;
    if (argc - optind != 1)
        return command_usage(&command_umount, "one MOUNTPOINT is needed");
    return umount_path(argv[optind], wish.lazy, wish.world);
}

/* Called by umount(8): MOUNTPOINT [-nflvr] [-N namespace] [-t type]. It must not call umount(8) again. */
int command_umount_helper(int argc, char **argv)
{
    bool lazy = false;
    int option;
    opterr = 0;
    while ((option = getopt(argc, argv, ":nflvrN:t:")) != -1) {
        if (option == '?' || option == ':')
            return command_usage(&command_umount, "option -%c: not one of umount(8)'s", optopt);
        lazy |= option == 'l' || option == 'f';
    }
    if (argc - optind != 1)
        return command_usage(&command_umount, "one MOUNTPOINT is needed");
    return umount_path(argv[optind], lazy, false);
}

static const struct command_option umount_options[] = {
    {"lazy", 'l', OPTION_FLAG, NULL, "unmount even if processes use the mount; they keep it until they leave",
     .place = offsetof(struct umount_wish, lazy)},
    {"world", 0, OPTION_FLAG, NULL, "unmount on all nodes of its world (lazily on the others)",
     .place = offsetof(struct umount_wish, world)},
    {0},
};

const struct command command_umount = {
    .name = "umount",
    .arguments = "[--lazy] [--world] MOUNTPOINT",
    .summary = "unmount, and free the RAM of the cache",
    .options = umount_options,
    .run = umount_command,
};
