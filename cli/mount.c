/* dealfs mount: mounts, and with -f waits until the mount ends. */
#include "cli/base/command.h"
#include "cli/base/interrupt.h"
#include "cli/live/live.h"
#include "cli/mount/nodes.h"
#include "cli/mount/start.h"
#include "cli/mount/unmount.h"
#include "fs/base/cleanup.h"
#include "fs/base/process.h"

#include <getopt.h>
#include <poll.h>
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
        if (poll(&end, 1, -1) > 0)
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

static int join_world(struct start *s, const struct launcher *launcher, char *const list[], int lists)
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
    int error = world_mount(s, launcher, list, lists, &why);
    return command_fail("%s", command_why(&why, error));
}

/* A mount that a courier has requested already belongs to a world, and one that waits joins later: both are mounted as
 * if alone. */
static int mount_here(struct start *s, char *const list[], int lists)
{
    struct launcher launcher;
    launcher_find(&launcher);
    bool alone = s->options.local > 0 || s->options.wait_join;
    if (launcher.name && !alone)
        return join_world(s, &launcher, list, lists);
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
    if (options_check(&s->options, &why))
        return command_bad_value(&why);
    if (argc - optind != 2)
        return command_usage(&command_mount, "a SOURCE and a MOUNTPOINT are needed");
    s->source = argv[optind];
    s->mountpoint = argv[optind + 1];
    return COMMAND_DONE;
}

/* `--ram 3G` is a mount option in another program's syntax. */
static int refuse_flag(int option, int argc, char **argv)
{
    CLEANUP_STR struct str value = STR_INIT;
    bool flag = false;
    if (optopt != '-' || optind >= argc)
        return command_usage(&command_mount, "option -%c: %s", optopt,
                             option == ':' ? "needs a value" : "unknown option");
    const char *word = argv[optind], *name = word + strspn(word, "-");
    size_t length = strcspn(name, "=");
    const char *meant = options_meant(name, length, &flag);
    if (!meant)
        return command_usage(&command_mount, "%s: unknown option. Options have the form `-o NAME=VALUE`", word);
    if (!flag)
        str_addf(&value, "=%s", name[length] ? name + length + 1 : argc - optind > 3 ? argv[optind + 1] : "VALUE");
    return command_usage(&command_mount, "%s: unknown option. Did you mean `-o %s%s`?", word, meant,
                         value.length ? value.data : "");
}

static int parse_and_mount(struct start *s, int argc, char **argv, char *list[])
{
    CLEANUP_STR struct str why = STR_INIT;
    int option, lists = 0;
    opterr = 0;
    optind = 1;
    while ((option = getopt(argc, argv, ":fo:")) != -1) {
        if (option == 'f')
            s->foreground = true;
        else if (option == 'o') {
            list[lists++] = optarg;
            if (options_parse(&s->options, optarg, &why))
                return command_bad_value(&why);
        } else {
            return refuse_flag(option, argc, argv);
        }
    }
    int status = take_arguments(s, argc, argv);
    return status ? status : mount_here(s, list, lists);
}

/* `list`: room for as many option lists as there are arguments. */
static int mount_with(int (*parse)(struct start *s, int argc, char **argv, char *list[]), int argc, char **argv)
{
    CLEANUP_FREE char **list = calloc((size_t)argc, sizeof *list);
    struct start s;
    if (!list)
        return command_fail("mount: %s", strerror(ENOMEM));
    start_init(&s);
    int status = parse(&s, argc, argv, list);
    start_fini(&s);
    return status;
}

static int mount_command(int argc, char **argv)
{
    return mount_with(parse_and_mount, argc, argv);
}

/* --- called by mount(8): SOURCE MOUNTPOINT [-sfnv] [-N namespace] [-o options] [-t type] --- */

static int parse_helper(struct start *s, int argc, char **argv, char *lists[])
{
    CLEANUP_STR struct str why = STR_INIT;
    bool fake = false, sloppy = false;
    int option, count = 0;
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

const struct command command_mount = {
    .name = "mount",
    .arguments = "[-f] [-o OPTION,…] SOURCE MOUNTPOINT",
    .summary = "mount the dataset in directory SOURCE on MOUNTPOINT",
    .help =
        "  -f                       stay in the foreground, log to stderr; Ctrl-C unmounts\n"
        "  -o ram=SIZE              RAM to cache samples in (512M, 10G, 25%; 0: none; default: 1/4 of available "
        "memory)\n"
        "  -o ssd=DIR               also cache samples in a folder of DIR (default: none)\n"
        "  -o ssd_size=SIZE         size of that cache (default: 90 % of the free space)\n"
        "  -o state=DIR             directory for catalog and log (default: below SLURM_TMPDIR, TMPDIR or /var/tmp)\n"
        "  -o cache_id=NAME         name of the state directory and shards, for reuse (default: from SOURCE)\n"
        "  -o digest=DIGEST         fail unless the dataset has this digest (default: any)\n"
        "  -o control=DIR           where the control files are (default: MOUNTPOINT/.dealfs)\n"
        "  -o rescan=WHEN           look for changes in the source: auto (default), names, always, never\n"
        "  -o identity=mtime        ignore ctime: for replicas and buckets (default: size, mtime and ctime)\n"
        "  -o owner=USER            mount on behalf of USER (root only; default: the user who mounts)\n"
        "  -o mounter=SOCKET        mount through the `dealfs mounter` that listens there (default: mount directly)\n"
        "  -o allow_other           also let other users read (default: no)\n"
        "  -o noexec                do not allow execution of files (default: no)\n"
        "  -o zstd=LEVEL            compress cached data: level 1 (default) to 19, or off\n"
        "  -o verify=WHEN           verify RAM data at every read: always (default), or once\n"
        "  -o source_threads=N      max concurrent reads of the source (16)\n"
        "  -o source_rate=SIZE      limit of bytes per second that this node reads from the source (default: "
        "unlimited)\n"
        "  -o nodes=N               under mpirun: fail unless the world has N nodes (default: any)\n"
        "  -o groups=G              groups of nodes that each cache the whole dataset (1)\n"
        "  -o wait_join             no scan: the first `dealfs join` brings the catalog; reads wait for it\n"
        "  -o peer_timeout=SEC      timeout of requests to other nodes, in seconds (5)\n"
        "  -o feed=SIZE             prefetch this far ahead of loaders; 0: no prefetch (256M, or 1/16 of free memory)\n"
        "  -o sampler=torch         prefetch what torch's DistributedSampler will read; needs ranks= and batch=\n"
        "  -o ranks=R               with sampler=torch: ranks of the job\n"
        "  -o batch=B               with sampler=torch: samples per batch of one rank\n"
        "  -o seed=S                with sampler=torch: the sampler's seed (0)\n"
        "  -o tail=pad              with sampler=torch: pad (default) or drop samples at the end\n"
        "  -o under=DIR             with sampler=torch: directory of its dataset in the mount (the root)\n"
        "  -o decoded=SIZE          memory for decoded images (32M)\n"
        "  -o request_memory=SIZE   memory for plans, uploads and replies (256M)\n"
        "  -o readahead=SIZE        readahead of the kernel, 4K to 1M (1M)\n"
        "  -o exchange              reserve room in the tiers for `dealfs exchange` and `shuffle` (default: no)\n"
        "  -o exchange_rate=SIZE    limit of bytes per second that exchanges send to this node (unlimited)\n"
        "  -o resize=PIXELS         scale JPEG images down to this shorter side before the mount is live (off)\n"
        "  -o quality=Q             with resize: JPEG quality, 1 to 100 (90)\n"
        "  -o metrics_file=PATH     also write the metrics there (default: none)\n"
        "\n"
        "`mpirun -n 4 --map-by ppr:1:node dealfs mount …` mounts on four nodes, which share their caches. The\n"
        "command runs until the world ends; the mounts stay. In MOUNTPOINT and paths, %r is the node's number\n"
        "and %h its host.\n"
        "\n"
        "dealfs-mount(1) describes all options.\n",
    .run = mount_command,
};
