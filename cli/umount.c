/* dealfs umount: take a mount away. */
#include "cli/command.h"
#include "cli/live.h"
#include "cli/unmount.h"
#include "fs/base/cleanup.h"

#include <getopt.h>
#include <string.h>

static int take_away(const struct live *live, bool lazy)
{
    CLEANUP_STR struct str why = STR_INIT;

    if (live->health == LIVE_ELSEWHERE)
        return command_fail("%s: is in the namespace of `dealfs run` (its keeper is process %d), and goes when that ends",
                            live->mountpoint, (int)live->keeper);
    int error = unmount_live(live, lazy, &why);
    if (!error)
        return COMMAND_DONE;
    if (error == -ETIMEDOUT && lazy) {
        command_note(stderr, "%s", why.data);
        return COMMAND_DONE;
    }
    return command_fail("%s", why.failed ? "out of memory" : why.data);
}

static int umount_path(const char *mountpoint, bool lazy)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct live live;

    if (live_find(mountpoint, &live, &why))
        return command_fail("%s", why.failed ? "out of memory" : why.data);
    int status = take_away(&live, lazy);
    live_fini(&live);
    return status;
}

static int run(int argc, char **argv)
{
    /* The world of a mount that is alone is the mount. */
    static const struct option names[] = {{"lazy", no_argument, NULL, 'l'}, {"world", no_argument, NULL, 'w'}, {0}};
    bool lazy = false;
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "l", names, NULL)) != -1) {
        if (option == '?')
            return command_usage(&command_umount, "option %s: is not known", argv[optind - 1]);
        lazy |= option == 'l';
    }
    if (argc - optind != 1)
        return command_usage(&command_umount, "one MOUNTPOINT is needed");
    return umount_path(argv[optind], lazy);
}

/* As umount(8) calls it: MOUNTPOINT [-nflvr] [-N namespace] [-t type]. It must not be called again from here. */
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
    return umount_path(argv[optind], lazy);
}

const struct command command_umount = {
    .name = "umount",
    .arguments = "[--lazy] [--world] MOUNTPOINT",
    .summary = "unmount, and give back what the mount held",
    .help = "  -l, --lazy  also when somebody is inside, who then stays inside until it leaves\n"
            "  --world     the mounts of all nodes of its world (for now that is this one)\n",
    .run = run,
};
