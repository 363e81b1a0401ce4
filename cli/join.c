/* dealfs join: form a world over live mounts. */
#include "cli/base/options.h"
#include "cli/mount/nodes.h"
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

struct join_line {
    uint64_t nodes, groups; /* 0: not given */
};

static int join_command(int argc, char **argv)
{
    struct join_line line = {0};
    int status = command_options(&command_join, &line, argc, argv);
    if (status)
        return status;
    if (argc - optind != 1)
        return command_usage(&command_join, "one MOUNTPOINT is needed");
    return join_world(argv[optind], &(struct world_wish){(unsigned)line.nodes, (unsigned)line.groups});
}

#define AT(member) .place = offsetof(struct join_line, member)
static const struct command_option join_options[] = {
    {"nodes", 0, OPTION_NUMBER, "N", "fail unless the world has N nodes (any)", AT(nodes), .most = NODES_MOST},
    {"groups", 0, OPTION_NUMBER, "G",
     "split the world into G groups that each cache the whole dataset (the mounts' groups=, or 1)", AT(groups),
     .most = GROUPS_MOST},
    {0},
};

const struct command command_join = {
    .name = "join",
    .arguments = "[--nodes N] [--groups G] MOUNTPOINT",
    .summary = "under mpirun: form a world of the mounts of several nodes",
    .options = join_options,
    .help = "`mpirun -n 4 … dealfs join MOUNTPOINT` starts one process per node. The command runs until the world "
            "ends; the mounts stay.\n",
    .run = join_command,
};
