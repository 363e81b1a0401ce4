/* How the laboratory's commands are called, and the way to it: see lab.h. */
#include "cli/lab/commands.h"

#include "cli/base/child.h"
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
    child_self(self);
    if (!words)
        return command_fail("%s: %s", argv[0], strerror(ENOMEM));
    if (!self[0] || handover_find_program("dealfs-lab", lab, sizeof lab))
        return command_fail("find dealfs-lab: neither beside dealfs nor in ../libexec/dealfs");
    words[0] = self;
    memcpy(words + 1, argv, (size_t)argc * sizeof *argv);
    execv(lab, words);
    return command_fail("start %s: %s", lab, strerror(errno));
}

enum {
    NODES_LIMIT = 16384,
    RANKS_LIMIT = 16384,
    BATCH_LIMIT = 1 << 20,
    COST_BATCH_LIMIT = 1 << 16,
    WINDOW_LIMIT = 4096,
    STEPS_LIMIT = 1000000,
    SECONDS_LIMIT = 3600,
    ECHO_FACTOR_MOST = 1000
};

#define AT(member) .place = offsetof(struct simulated, member)
static const struct command_option simulate_options[] = {
    {"nodes", 0, OPTION_NUMBERS, "P,...", "numbers of nodes (16,64,256)", AT(nodes), .most = NODES_LIMIT},
    {"batch", 0, OPTION_NUMBERS, "B,...", "samples per node and step (32,64,128)", AT(batch), .most = BATCH_LIMIT},
    {"samples", 0, OPTION_NUMBER, "N", "samples of the dataset (1281167)", AT(samples), .most = SAMPLES_LIMIT},
    {"steps", 0, OPTION_NUMBER, "T", "steps per pair of nodes and batch (1000)", AT(steps), .most = STEPS_LIMIT},
    {"json", 0, OPTION_FLAG, NULL, "print a JSON list instead of a table", AT(json)},
    {"plot", 0, OPTION_TEXT, "FILE", "also draw box plots, as SVG", AT(plot)},
    {0},
};

#undef AT
#define AT(member) .place = offsetof(struct costs_wanted, member)
static const struct command_option cost_options[] = {
    {"ranks", 0, OPTION_NUMBERS, "R,...", "numbers of ranks (16,64,1024)", AT(ranks), .most = RANKS_LIMIT},
    {"batch", 0, OPTION_NUMBERS, "B,...", "samples per rank and step (4,8,32)", AT(batch), .most = COST_BATCH_LIMIT},
    {"window", 0, OPTION_NUMBERS, "A,...", "steps after which ranks wait for each other (1,8)", AT(window),
     .most = WINDOW_LIMIT},
    {"samples", 0, OPTION_NUMBER, AT(samples), .most = SAMPLES_LIMIT},
    {"steps", 0, OPTION_NUMBER, "T", "at most this many windows per line (40)", AT(steps), .most = STEPS_LIMIT},
    {"balance", 0, OPTION_REAL, "F", "limit of a rank's cost, as a multiple of the mean (1.02)", AT(balance),
     .least = 1, .most = 1000},
    {"distribution", 0, OPTION_TEXT, "D", "lognormal, exponential or uniform (lognormal)", AT(distribution)},
    {"costs", 0, OPTION_TEXT, "FILE",
     "costs of the samples, 32-bit numbers as for the `costs` request, instead of a distribution", AT(costs)},
    {"json", 0, OPTION_FLAG, AT(json)},
    {0},
};

#undef AT
#define AT(member) .place = offsetof(struct modelled, member)
#define RATE(value, help) OPTION_REAL, value, help, .least = 1e-9, .most = 1e15
#define PART(value, help) OPTION_REAL, value, help, .most = 1
static const struct command_option model_options[] = {
    {"samples", 0, OPTION_REAL, "D", "samples of the dataset", AT(samples), .least = 1, .most = 1e12, .required = true},
    {"nodes", 0, OPTION_NUMBERS, "P,...", "numbers of nodes", AT(nodes), .most = NODES_LIMIT},
    {"train-rate", 0, RATE("V", "samples per second that one node can train on"), AT(train), .required = true},
    {"storage-rate", 0, RATE("R", "samples per second that storage delivers to all nodes together"), AT(storage),
     .required = true},
    {"cache-rate", 0, RATE("Rc", "samples per second that all nodes together send each other"), AT(cache),
     .required = true},
    {"balance-rate", 0, RATE("Rb", "the same while batches are balanced (default: --cache-rate)"), AT(balance)},
    {"preprocess-rate", 0, RATE("U", "samples per second that one node can preprocess (unlimited)"), AT(preprocess)},
    {"cached", 0, PART("A", "share of the dataset that the nodes cache, 0 to 1 (1)"), AT(cached)},
    {"beta", 0, PART("B", "share of cached samples that must move (default: simulated)"), AT(beta)},
    {"batch", 0, OPTION_NUMBER, "N", "samples per node and step, for --beta and --echo (32)", AT(batch),
     .most = BATCH_LIMIT},
    {"exchange", 0, PART("Q", "also for `mode=local`, with this share exchanged per epoch, 0 to 1"), AT(exchange)},
    {"echo", 0, OPTION_REALS, "E,...", "also data echoing with these factors", AT(echo.factors), .least = 1,
     .most = ECHO_FACTOR_MOST},
    {"upstream-rate", 0, RATE("U", "samples per second that one node reads and decodes, for --echo"),
     AT(echo.upstream)},
    {"calibrate", 0, OPTION_TEXT, "MOUNT", "measure the rates on a mount; rates that are given take precedence",
     AT(mount)},
    {"seconds", 0, OPTION_NUMBER, "S", "seconds per measurement (3)", AT(seconds), .most = SECONDS_LIMIT},
    {"json", 0, OPTION_FLAG, NULL, "JSON instead of a table", AT(json)},
    {"plot", 0, OPTION_TEXT, "FILE", "also draw lines, as SVG", AT(plot)},
    {"plot-echo", 0, OPTION_TEXT, "FILE", "also draw the curves of --echo, as SVG", AT(plot_echo)},
    {0},
};

static const struct command_option demo_options[] = {
    {"keep", 0, OPTION_FLAG, NULL, "do not remove the images at the end", .place = 0},
    {0},
};

const struct command command_simulate = {
    .name = "simulate",
    .arguments = "imbalance|cost [--nodes P,...] [--ranks R,...] [--batch B,...] [--samples N] [--steps T] [...]",
    .summary = "simulate the imbalance of batches between nodes, or of costs between ranks",
    .options = simulate_options,
    .others = cost_options,
    .help = "for `cost`:\n",
    .run = lab_execute,
};

const struct command command_model = {
    .name = "model",
    .arguments =
        "[--calibrate MOUNTPOINT] --samples D --nodes P,... --train-rate V --storage-rate R --cache-rate Rc [...]",
    .summary = "estimate the time of an epoch, and the number of nodes above which storage limits it",
    .options = model_options,
    .run = lab_execute,
};

const struct command command_demo = {
    .name = "demo",
    .arguments = "[--keep]",
    .summary = "show on a small generated dataset where reads are answered",
    .options = demo_options,
    .run = lab_execute,
};
