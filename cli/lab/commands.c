/* How the laboratory's commands are called, and the way to it: see lab.h. */
#include "cli/base/command.h"
#include "fs/base/cleanup.h"
#include "fs/wire/handover.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

/* Its argv[0] is the path of this program. */
static int lab_execute(int argc, char **argv)
{
    CLEANUP_FREE char **words = calloc((size_t)argc + 2, sizeof *words);
    char lab[PATH_MAX], self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (!words)
        return command_fail("%s: %s", argv[0], strerror(ENOMEM));
    if (n <= 0 || handover_find_program("dealfs-lab", lab, sizeof lab))
        return command_fail("find dealfs-lab: neither beside dealfs nor in ../libexec/dealfs");
    self[n] = '\0';
    words[0] = self;
    memcpy(words + 1, argv, (size_t)argc * sizeof *argv);
    execv(lab, words);
    return command_fail("start %s: %s", lab, strerror(errno));
}

const struct command command_simulate = {
    .name = "simulate",
    .arguments = "imbalance|cost [--nodes P,...] [--ranks R,...] [--batch B,...] [--samples N] [--steps T] [...]",
    .summary = "simulate the imbalance of batches between nodes, or of costs between ranks",
    .help = "  --nodes P,...    numbers of nodes (16,64,256)\n"
            "  --batch B,...    samples per node and step (32,64,128)\n"
            "  --samples N      samples of the dataset (1281167)\n"
            "  --steps T        steps per pair of nodes and batch (1000)\n"
            "  --json           print a JSON list instead of a table\n"
            "  --plot FILE      also draw box plots, as SVG\n"
            "for `cost`:\n"
            "  --ranks R,...    numbers of ranks (16,64,1024)\n"
            "  --batch B,...    samples per rank and step (4,8,32)\n"
            "  --window A,...   steps after which ranks wait for each other (1,8)\n"
            "  --steps T        at most this many windows per line (40)\n"
            "  --balance F      limit of a rank's cost, as a multiple of the mean (1.02)\n"
            "  --distribution lognormal|exponential|uniform\n"
            "  --costs FILE     costs of the samples, 32-bit numbers as for the `costs` request, instead of a "
            "distribution\n",
    .run = lab_execute,
};

const struct command command_model = {
    .name = "model",
    .arguments =
        "[--calibrate MOUNTPOINT] --samples D --nodes P,... --train-rate V --storage-rate R --cache-rate Rc [...]",
    .summary = "estimate the time of an epoch, and the number of nodes above which storage limits it",
    .help = "  --samples D           samples of the dataset\n"
            "  --nodes P,...         numbers of nodes\n"
            "  --train-rate V        samples per second that one node can train on\n"
            "  --storage-rate R      samples per second that storage delivers to all nodes together\n"
            "  --cache-rate Rc       samples per second that all nodes together send each other\n"
            "  --balance-rate Rb     the same while batches are balanced (default: --cache-rate)\n"
            "  --preprocess-rate U   samples per second that one node can preprocess (unlimited)\n"
            "  --cached A            share of the dataset that the nodes cache, 0 to 1 (1)\n"
            "  --beta B              share of cached samples that must move (default: simulated)\n"
            "  --batch N             samples per node and step, for --beta and --echo (32)\n"
            "  --exchange Q          also for `mode=local`, with this share exchanged per epoch, 0 to 1\n"
            "  --echo E,...          also data echoing with these factors\n"
            "  --upstream-rate U     samples per second that one node reads and decodes, for --echo\n"
            "  --calibrate MOUNT     measure the rates on a mount; rates that are given take precedence\n"
            "  --seconds S           seconds per measurement (3)\n"
            "  --json                JSON instead of a table\n"
            "  --plot FILE           also draw lines, as SVG\n"
            "  --plot-echo FILE      also draw the curves of --echo, as SVG\n",
    .run = lab_execute,
};

const struct command command_demo = {
    .name = "demo",
    .arguments = "[--keep]",
    .summary = "show on a small generated dataset where reads are answered",
    .help = "  --keep   do not remove the images at the end\n",
    .run = lab_execute,
};
