/* dealfs join: form a world over live mounts. */
#include "cli/base/command.h"
#include "cli/mount/nodes.h"
#include "fs/base/size.h"
#include "fs/wire/node.h"

#include <getopt.h>

static int join_world(const char *mountpoint, const struct world_wish *wish)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct launcher launcher;
    launcher_find(&launcher);
    if (!launcher.name)
        return command_fail("join %s: the command runs on one node only: use `mpirun -n NODES --map-by ppr:1:node "
                            "dealfs join %s`, or `srun --mpi=pmix …`",
                            mountpoint, mountpoint);
    int error = world_join(mountpoint, &launcher, wish, &why);
    return command_fail("%s", command_why(&why, error));
}

static int join_command(int argc, char **argv)
{
    static const struct option names[] = {
        {"nodes", required_argument, NULL, 'n'}, {"groups", required_argument, NULL, 'g'}, {0}};
    struct world_wish wish = {0};
    uint64_t number;
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":n:g:", names, NULL)) != -1) {
        if (option == '?' || option == ':')
            return command_bad_option(&command_join, option, argv);
        if (number_parse(optarg, 1, NODES_MOST, &number))
            return command_usage(&command_join, "%s: must be a number from 1 to %d", optarg, NODES_MOST);
        *(option == 'n' ? &wish.nodes : &wish.groups) = (unsigned)number;
    }
    if (argc - optind != 1)
        return command_usage(&command_join, "one MOUNTPOINT is needed");
    return join_world(argv[optind], &wish);
}

const struct command command_join = {
    .name = "join",
    .arguments = "[--nodes N] [--groups G] MOUNTPOINT",
    .summary = "under mpirun: form a world of the mounts of several nodes",
    .help =
        "  --nodes N   fail unless the world has N nodes (any)\n"
        "  --groups G  split the world into G groups that each cache the whole dataset (the mounts' groups=, or 1)\n"
        "\n"
        "`mpirun -n 4 … dealfs join MOUNTPOINT` starts one process per node. The command runs until the world "
        "ends; the mounts stay.\n",
    .run = join_command,
};
