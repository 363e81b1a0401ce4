/* dealfs mount: mounts, and with -f waits until the mount ends. */
#include "cli/base/interrupt.h"
#include "cli/base/options.h"
#include "cli/live/live.h"
#include "cli/mount/nodes.h"
#include "cli/mount/start.h"
#include "cli/mount/unmount.h"
#include "fs/base/cleanup.h"
#include "fs/base/process.h"
#include "fs/base/ready.h"

#include <getopt.h>
#include <string.h>
#include <sys/wait.h>

/* --- in the foreground --- */

static int take_away(struct start *s)
{
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_LIVE struct live live = {0};
    int error = live_find(s->config.mountpoint, &live, &why);
    if (error)
        return error == -ENOENT ? COMMAND_DONE : command_fail("%s", why.data);
    error = unmount_live(&live, false, &why);
    if (error == -EBUSY) {
        str_clear(&why);
        error = unmount_live(&live, true, &why);
        if (error == -ETIMEDOUT) {
            command_note(s->to, "%s", why.data);
            error = 0;
        }
    }
    return error ? command_fail("%s", why.data) : COMMAND_DONE;
}

/* How the keeper ended; a keeper that replaced a dead one is not our child. */
static int status_of_end(struct start *s)
{
    int status;
    if (waitpid(s->keeper, &status, 0) == s->keeper && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return take_away(s);
    take_away(s);
    return command_fail("%s: the mount failed and was removed", s->config.mountpoint);
}

/* Our end of the pipe reports an error when all processes of the mount have closed the other end. */
static int stay_mounted(struct start *s)
{
    struct pollfd end = {.fd = s->life, .events = 0};
    while (!interrupted)
        if (ready_wait(&end, 1, -1) > 0)
            return status_of_end(s);
    int status = take_away(s);
    waitpid(s->keeper, NULL, WNOHANG);
    return status;
}

/* --- the command --- */

static int mount_it(struct start *s)
{
    CLEANUP_STR struct str why = STR_INIT;
    s->attached = s->foreground;
    int error = s->options.part.count ? start_look(s, &why) : start_mount(s, &why);
    if (error)
        return command_fail("%s", command_why(&why, error));
    return s->foreground && !s->options.part.count ? stay_mounted(s) : COMMAND_DONE;
}

/* --- alone, or as one of many --- */

static int refuse_nodes(const struct start *s)
{
    return command_fail("option nodes=%u: the command runs on one node only: use `mpirun -n %u --map-by ppr:1:node "
                        "dealfs mount …`, or `srun --mpi=pmix …`",
                        s->options.nodes, s->options.nodes);
}

static int join_world(struct start *s, const struct launcher *launcher)
{
    CLEANUP_STR struct str why = STR_INIT;
    if (s->foreground)
        return command_usage(
            &command_mount,
            "option -f: omit it under %s, where the courier stays in the foreground and the mount outlives it",
            launcher->name);
    if (s->options.mounter)
        return command_usage(&command_mount, "option mounter: under %s, mount with wait_join, then run `dealfs join`",
                             launcher->name);
    int error = world_mount(s, launcher, &why);
    return command_fail("%s", command_why(&why, error));
}

/* A mount that a courier has requested already belongs to a world, and one that waits joins later: both are mounted as
 * if alone. */
static int mount_here(struct start *s)
{
    struct launcher launcher;
    launcher_find(&launcher);
    bool alone = s->options.local > 0 || s->options.wait_join;
    if (launcher.name && !alone)
        return join_world(s, &launcher);
    if (!alone && s->options.nodes > 1)
        return refuse_nodes(s);
    if (launcher.name && !s->options.local)
        s->options.node = launcher.rank;
    s->slot = s->options.local > 1 ? (int)(s->options.node % s->options.local) : launcher.slot;
    if (launcher.name)
        process_leave_launcher();
    return mount_it(s);
}

/* Parse the arguments after the options, and check their combination. */
static int take_arguments(struct start *s, int argc, char **argv)
{
    CLEANUP_STR struct str why = STR_INIT;
    if (options_take(&s->options, &s->given, &why))
        return command_bad_value(&why);
    if (argc - optind != 2)
        return command_usage(&command_mount, "a SOURCE and a MOUNTPOINT are needed");
    s->source = argv[optind];
    s->mountpoint = argv[optind + 1];
    return COMMAND_DONE;
}

static int parse_and_mount(struct start *s, int argc, char **argv)
{
    int status = command_options(&command_mount, s, argc, argv);
    if (!status)
        status = take_arguments(s, argc, argv);
    return status ? status : mount_here(s);
}

static int mount_with(int (*parse)(struct start *s, int argc, char **argv), int argc, char **argv)
{
    struct start s;
    start_init(&s);
    int status = parse(&s, argc, argv);
    start_fini(&s);
    return status;
}

static int mount_command(int argc, char **argv)
{
    return mount_with(parse_and_mount, argc, argv);
}

/* --- called by mount(8): SOURCE MOUNTPOINT [-sfnv] [-N namespace] [-o options] [-t type] --- */

static int parse_helper(struct start *s, int argc, char **argv)
{
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_FREE char **lists = calloc((size_t)argc, sizeof *lists);
    bool fake = false, sloppy = false;
    int option, count = 0;
    if (!lists)
        return command_fail("mount: %s", strerror(ENOMEM));
    opterr = 0;
    while ((option = getopt(argc, argv, ":sfnvN:o:t:")) != -1) {
        if (option == 'f')
            fake = true;
        else if (option == 's')
            sloppy = true;
        else if (option == 'o')
            lists[count++] = optarg;
        else if (option == '?' || option == ':')
            return command_usage(&command_mount, "option -%c: not one of mount(8)'s", optopt);
    }
    for (int i = 0; i < count; i++)
        if (options_parse(&s->options, lists[i], &why) && !sloppy)
            return command_bad_value(&why);
    int status = take_arguments(s, argc, argv);
    if (status)
        return status;
    if (s->options.nodes > 1 && !sloppy)
        return refuse_nodes(s);
    return fake ? COMMAND_DONE : mount_it(s);
}

int command_mount_helper(int argc, char **argv)
{
    return mount_with(parse_helper, argc, argv);
}

static const struct command_option mount_options[] = {
    {"", 'f', OPTION_FLAG, NULL, "stay in the foreground, log to stderr; Ctrl-C unmounts",
     .place = offsetof(struct start, foreground)},
    {"", 'o', OPTION_LIST, .place = offsetof(struct start, given)},
    {0},
};

const struct command command_mount = {
    .name = "mount",
    .arguments = "[-f] [-o OPTION,…] SOURCE MOUNTPOINT",
    .summary = "mount the dataset in directory SOURCE on MOUNTPOINT",
    .options = mount_options,
    .mount_options = options_add_help,
    .refuse = options_refuse,
    .help = "`mpirun -n 4 --map-by ppr:1:node dealfs mount …` mounts on four nodes, which share their caches. The\n"
            "command runs until the world ends; the mounts stay. In MOUNTPOINT and paths, %r is the node's number\n"
            "and %h its host.\n"
            "\n"
            "dealfs-mount(1) describes all options.\n",
    .run = mount_command,
};
