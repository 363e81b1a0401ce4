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
    .summary = "simulate how uneven batches fall on nodes, or how uneven ranks are in cost",
    .help = "  --nodes P,...    numbers of nodes; 16,64,256\n"
            "  --batch B,...    samples of a step on one node; 32,64,128\n"
            "  --samples N      of the dataset; 1281167\n"
            "  --steps T        steps for each pair; 1000\n"
            "  --json           a list of objects instead of a table\n"
            "  --plot FILE      also draw boxes, as SVG\n"
            "cost, by the costs of samples:\n"
            "  --ranks R,...    16,64,1024\n"
            "  --batch B,...    samples of a step on one rank; 4,8,32\n"
            "  --window A,...   steps after which ranks wait for each other; 1,8\n"
            "  --steps T        windows for each line, at most; 40\n"
            "  --balance F      no rank costs more than F times the mean, where swaps reach that; 1.02\n"
            "  --distribution lognormal|exponential|uniform\n"
            "  --costs FILE     of the samples, numbers of 32 bits as they are uploaded, instead of a distribution\n",
    .run = lab_execute,
};

const struct command command_model = {
    .name = "model",
    .arguments =
        "[--calibrate MOUNTPOINT] --samples D --nodes P,... --train-rate V --storage-rate R --cache-rate Rc [...]",
    .summary = "tell what an epoch costs, and where storage binds",
    .help = "  --samples D           samples of the dataset\n"
            "  --nodes P,...         numbers of nodes\n"
            "  --train-rate V        samples per second that a node trains with\n"
            "  --storage-rate R      that the storage gives to all nodes together\n"
            "  --cache-rate Rc       that nodes give each other\n"
            "  --balance-rate Rb     the same for balancing; as --cache-rate\n"
            "  --preprocess-rate U   that a node preprocesses; no limit\n"
            "  --cached A            share of the dataset that the nodes keep, 0 to 1; 1\n"
            "  --beta B              share of the kept that must move; simulated\n"
            "  --batch N             samples of a step on one node, for that simulation and echoes; 32\n"
            "  --exchange Q          also local reading, with this share exchanged for each epoch, 0 to 1\n"
            "  --echo E,...          also data echoing with these factors\n"
            "  --upstream-rate U     samples per second that a node reads and decodes, for that\n"
            "  --calibrate MOUNT     measure the rates of a mount, and take them where none is given\n"
            "  --seconds S           how long each of them is measured; 3\n"
            "  --json                JSON instead of a table\n"
            "  --plot FILE           also draw lines, as SVG\n"
            "  --plot-echo FILE      the same of --echo\n",
    .run = lab_execute,
};

const struct command command_demo = {
    .name = "demo",
    .arguments = "",
    .summary = "mount a small data set made for it, and show what comes from where",
    .help = "",
    .run = lab_execute,
};
