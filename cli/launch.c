/* dealfs launch: mount on every node of a job, run a command there, and remove everything. */
#include "cli/base/options.h"
#include "cli/launch/agent.h"
#include "cli/launch/head.h"
#include "cli/launch/launch-world.h"
#include "cli/mount/mount-options.h"
#include "fs/base/clock.h"

#include <getopt.h>
#include <string.h>

enum { GRACE = 20, GRACE_MOST = 86400 };

struct launch_line {
    struct launch_wish wish;
    struct str options;
    const char *hosts, *hostfile;
    uint64_t grace;
    bool agent;
};

static int check_options(const struct launch_line *line)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct mount_options o;
    int status = COMMAND_DONE;
    options_init(&o);
    if (options_take(&o, &line->options, &why))
        status = command_bad_value(&why);
    else if (o.owner || o.nodes || o.wait_join)
        status = command_usage(&command_launch, "option %s: `launch` decides this itself",
                               o.owner   ? "owner"
                               : o.nodes ? "nodes"
                                         : "wait_join");
    options_fini(&o);
    return status;
}

static int parse_options(struct launch_line *line, int argc, char **argv)
{
    int status = command_options(&command_launch, line, argc, argv);
    if (status)
        return status;
    if (line->grace / SECOND > GRACE_MOST)
        return command_usage(&command_launch, "--grace: not a time of up to a day");
    line->wish.grace = (unsigned)(line->grace / SECOND);
    if (line->hosts && line->hostfile)
        return command_usage(&command_launch, "--hosts and --hostfile cannot be combined");
    return COMMAND_DONE;
}

static int launch_job(struct launch_line *line)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct launch_nodes nodes;
    int error = launch_nodes_find(&nodes, line->hosts, line->hostfile, &why);
    if (!error)
        error = launch_world_check(&nodes, &why);
    int status = error ? command_fail("%s", command_why(&why, error)) : head_run(&nodes, &line->wish);
    launch_nodes_fini(&nodes);
    return status;
}

static int parse_and_launch(struct launch_line *line, int argc, char **argv)
{
    int status = parse_options(line, argc, argv);
    if (status == COMMAND_DONE && line->agent)
        return agent_main();
    if (status == COMMAND_DONE)
        status = check_options(line);
    if (status != COMMAND_DONE)
        return status;
    int first = optind + 2;
    if (first < argc && strcmp(argv[first], "--") == 0)
        first++;
    if (optind > argc - 2 || first >= argc)
        return command_usage(&command_launch, "a SOURCE, a MOUNTPOINT and a command are needed");
    line->wish.options = line->options.data ? line->options.data : "";
    line->wish.source = argv[optind];
    line->wish.mountpoint = argv[optind + 1];
    line->wish.command = argv + first;
    return launch_job(line);
}

static int launch_command(int argc, char **argv)
{
    struct launch_line line = {.grace = GRACE * SECOND};
    int status = parse_and_launch(&line, argc, argv);
    str_fini(&line.options);
    return status;
}

#define AT(member) .place = offsetof(struct launch_line, member)
static const struct command_option launch_options[] = {
    {"", 'o', OPTION_LIST, "OPTION,…", "as for `dealfs mount`", AT(options)},
    {"stage", 0, OPTION_FLAG, NULL, "fill the caches before the command starts", AT(wish.stage)},
    {"once", 0, OPTION_FLAG, NULL, "run the command on the first node only (default: once per node)", AT(wish.once)},
    {"hosts", 0, OPTION_TEXT, "A,B,…", "the nodes, reached by ssh (default: those of the Slurm job, else this machine)",
     AT(hosts)},
    {"hostfile", 0, OPTION_TEXT, "FILE", "the same, one host per line", AT(hostfile)},
    {"grace", 0, OPTION_TIME, "TIME", "how long the command may take to end after SIGTERM (20s)", AT(grace)},
    {"agent", 0, OPTION_FLAG, AT(agent)},
    {0},
};

const struct command command_launch = {
    .name = "launch",
    .arguments = "[-o OPTION,…] [--stage] [--once] [--grace TIME] [--hosts A,B,… | --hostfile FILE] SOURCE MOUNTPOINT "
                 "-- COMMAND…",
    .summary = "mount on every node of a job, run a command there, unmount",
    .options = launch_options,
    .help = "The command gets the variables NNODES, NODE_RANK, MASTER_ADDR, MASTER_PORT and DEALFS_MOUNT (its\n"
            "mountpoint). If it fails on one node, it is ended on the others, and `launch` exits with its status.\n"
            "\n"
            "Example: dealfs launch --stage /data /mnt/data -- python train.py /mnt/data\n",
    .runs_another = true,
    .refuse = options_refuse,
    .run = launch_command,
};
