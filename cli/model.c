/* `dealfs model`: what an epoch costs by the performance model of Yang and Cong (equations 1 to 8), over numbers of nodes.
 *
 *   training      D/(pV)                          (1)     preprocessing  D/(pU)              (3)
 *   regular       D/R                             (2)     loading        one of these + (3)  (4)
 *   distributed   (1-a)D/R + aD/Rc (p-1)/p        (7)     epoch          max(training, loading)  (6)
 *   locality      (1-a)D/R + aD/Rb b              (8)     storage binds  p > R/V             (5) */
#include "cli/command.h"

#include "cli/calibrate.h"
#include "cli/chart.h"
#include "cli/imbalance.h"
#include "fs/base/json.h"
#include "fs/base/size.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum way { REGULAR, DISTRIBUTED, LOCALITY, WAYS };
static const char *const way_names[WAYS] = {"regular", "distributed", "locality"};

enum { NODES_LIMIT = 16384, BATCH_LIMIT = 1 << 20, SECONDS_LIMIT = 3600, SIMULATED_STEPS = 200, SIMULATED_SAMPLES = 1281167 };

struct world {
    double samples;                                    /* D */
    double train, storage, cache, balance, preprocess; /* V, R, Rc, Rb, U: samples a second; U infinite when not given */
    double cached;                                     /* alpha; below 0: not given */
    double beta;                                       /* below 0: simulated */
    uint32_t batch, nodes[NUMBERS_MOST];
    int count;
    bool json;
    const char *plot;
    const char *mount; /* to be measured; NULL: none */
    uint32_t seconds;
    struct calibration measured;
};

struct cost {
    double beta, training, preprocessing;
    struct {
        double io, loading, epoch;
    } way[WAYS];
};

/* The samples beyond what a simulation needs only make it slow; fewer than a batch cannot be simulated. */
static int find_beta(const struct world *w, uint32_t nodes, double *beta)
{
    struct imbalance box;
    uint64_t least = (uint64_t)nodes * w->batch;
    double samples = w->samples < SIMULATED_SAMPLES ? w->samples : SIMULATED_SAMPLES;

    if (w->beta >= 0) {
        *beta = w->beta;
        return 0;
    }
    if (samples < (double)least)
        samples = (double)least < w->samples ? (double)least : w->samples;
    int error = imbalance_simulate(nodes, w->batch, (uint32_t)samples, SIMULATED_STEPS, &box);
    *beta = error ? 0 : box.mean / 100;
    return error;
}

static struct cost cost_of(const struct world *w, uint32_t nodes, double beta)
{
    double d = w->samples, p = nodes;
    struct cost c = {.beta = beta, .training = d / (p * w->train), .preprocessing = d / (p * w->preprocess)};
    double missing = (1 - w->cached) * d / w->storage;

    c.way[REGULAR].io = d / w->storage;
    c.way[DISTRIBUTED].io = missing + w->cached * d / w->cache * (p - 1) / p;
    c.way[LOCALITY].io = missing + w->cached * d * beta / w->balance;
    for (int i = 0; i < WAYS; i++) {
        c.way[i].loading = c.way[i].io + c.preprocessing;
        c.way[i].epoch = fmax(c.training, c.way[i].loading);
    }
    return c;
}

static void print_table(const struct world *w, const struct cost *cost)
{
    double binds = w->storage / w->train;

    printf("seconds for an epoch; * where loading costs more than training\n\n");
    printf("%6s %7s %11s %12s %12s %12s\n", "nodes", "beta", "training", way_names[REGULAR], way_names[DISTRIBUTED],
           way_names[LOCALITY]);
    for (int i = 0; i < w->count; i++) {
        printf("%6" PRIu32 " %6.2f%% %11.4g", w->nodes[i], 100 * cost[i].beta, cost[i].training);
        for (int way = 0; way < WAYS; way++)
            printf(" %11.4g%s", cost[i].way[way].epoch, cost[i].way[way].loading > cost[i].training ? "*" : " ");
        printf("\n");
    }
    printf("\nStorage binds regular loading above R/V = %.4g nodes: an epoch then costs D/R = %.4g s, however many there are.\n",
           binds, w->samples / w->storage);
}

static void add_cost(struct json *json, const struct world *w, uint32_t nodes, const struct cost *cost)
{
    json_begin_object(json, NULL);
    json_uint(json, "nodes", nodes);
    json_fixed(json, "beta", cost->beta, 6);
    json_fixed(json, "training", cost->training, 6);
    json_fixed(json, "preprocessing", cost->preprocessing, 6);
    json_bool(json, "storage_binds", nodes > w->storage / w->train);
    for (int way = 0; way < WAYS; way++) {
        json_begin_object(json, way_names[way]);
        json_fixed(json, "io", cost->way[way].io, 6);
        json_fixed(json, "loading", cost->way[way].loading, 6);
        json_fixed(json, "epoch", cost->way[way].epoch, 6);
        json_end_object(json);
    }
    json_end_object(json);
}

static bool print_json(const struct world *w, const struct cost *cost)
{
    CLEANUP_STR struct str text = STR_INIT;
    struct json json = {.out = &text};

    json_begin_object(&json, NULL);
    if (w->mount) {
        json_begin_object(&json, "measured");
        calibration_add(&json, &w->measured);
        json_end_object(&json);
    }
    if (w->count > 0) {
        json_fixed(&json, "binds_above", w->storage / w->train, 6);
        json_begin_array(&json, "costs");
        for (int i = 0; i < w->count; i++)
            add_cost(&json, w, w->nodes[i], &cost[i]);
        json_end_array(&json);
    }
    json_end_object(&json);
    str_adds(&text, "\n");
    if (text.failed)
        return false;
    fwrite(text.data, 1, text.length, stdout);
    return true;
}

/* The edges: whole decades around all epochs, the numbers of nodes given with a little room. */
static void set_edges(const struct world *w, const struct cost *cost, struct chart *c)
{
    double low = cost[0].training, high = low;

    c->left = c->right = w->nodes[0];
    for (int i = 0; i < w->count; i++) {
        c->left = fmin(c->left, w->nodes[i]);
        c->right = fmax(c->right, w->nodes[i]);
        low = fmin(low, cost[i].training);
        for (int way = 0; way < WAYS; way++)
            high = fmax(high, cost[i].way[way].epoch);
    }
    c->left /= 1.3;
    c->right *= 1.3;
    c->bottom = pow(10, floor(log10(low)));
    c->top = pow(10, ceil(log10(high)));
    if (c->top <= c->bottom)
        c->top = 10 * c->bottom;
}

static void draw(const struct world *w, const struct cost *cost, struct chart *c)
{
    double x[NUMBERS_MOST], y[NUMBERS_MOST], binds = w->storage / w->train;
    char label[64];

    chart_begin(c, "What an epoch costs", "nodes", "seconds");
    for (double tick = c->bottom; tick <= c->top * 1.01; tick *= 10) {
        snprintf(label, sizeof label, "%g", tick);
        chart_tick_y(c, tick, label);
    }
    for (int i = 0; i < w->count; i++) {
        x[i] = w->nodes[i];
        snprintf(label, sizeof label, "%" PRIu32, w->nodes[i]);
        chart_tick_x(c, x[i], label);
    }
    if (binds > c->left && binds < c->right)
        chart_rule(c, binds, "storage binds: p = R/V");
    for (int i = 0; i < w->count; i++)
        y[i] = cost[i].training;
    chart_line(c, CHART_COLOURS - 1, x, y, w->count);
    chart_legend(c, CHART_COLOURS - 1, "training alone");
    for (int way = 0; way < WAYS; way++) {
        for (int i = 0; i < w->count; i++)
            y[i] = cost[i].way[way].epoch;
        chart_line(c, way, x, y, w->count);
        chart_legend(c, way, way_names[way]);
    }
    chart_end(c);
}

static int plot(const struct world *w, const struct cost *cost)
{
    struct chart chart = {.logarithmic = true};

    set_edges(w, cost, &chart);
    draw(w, cost, &chart);
    int error = chart_write(&chart, w->plot);
    return error ? command_fail("write %s: %s", w->plot, strerror(-error)) : COMMAND_DONE;
}

static int evaluate(const struct world *w, struct cost *cost)
{
    for (int i = 0; i < w->count; i++) {
        double beta;
        int error = find_beta(w, w->nodes[i], &beta);
        if (error == -ERANGE)
            return command_fail("model: a batch of %" PRIu32 " on %" PRIu32 " nodes is more than the samples", w->batch,
                                w->nodes[i]);
        if (error)
            return command_fail("model: %s", strerror(-error));
        cost[i] = cost_of(w, w->nodes[i], beta);
    }
    return w->plot ? plot(w, cost) : COMMAND_DONE;
}

static int print(const struct world *w, const struct cost *cost)
{
    if (w->json)
        return print_json(w, cost) ? COMMAND_DONE : command_fail("model: out of memory");
    if (w->mount) {
        calibration_print(&w->measured);
        if (w->count > 0)
            printf("\n");
    }
    if (w->count > 0)
        print_table(w, cost);
    return COMMAND_DONE;
}

static bool real_parse(const char *text, double min, double max, double *value)
{
    char *end;

    if (!strchr("0123456789.", *text) || !*text)
        return false;
    errno = 0;
    *value = strtod(text, &end);
    return !errno && !*end && *value >= min && *value <= max;
}

struct real {
    char option;
    const char *name;
    size_t offset;
    double min, max;
    bool required;
};
#define REAL(option, name, member, min, max, required) {option, name, offsetof(struct world, member), min, max, required}
static const struct real reals[] = {
    REAL('d', "samples", samples, 1, 1e12, true),        REAL('v', "train-rate", train, 1e-9, 1e15, true),
    REAL('r', "storage-rate", storage, 1e-9, 1e15, true), REAL('c', "cache-rate", cache, 1e-9, 1e15, true),
    REAL('b', "balance-rate", balance, 1e-9, 1e15, false), REAL('u', "preprocess-rate", preprocess, 1e-9, 1e15, false),
    REAL('a', "cached", cached, 0, 1, false),            REAL('e', "beta", beta, 0, 1, false),
};
enum { REALS = sizeof reals / sizeof *reals };

static int take_option(struct world *w, int option)
{
    uint64_t number;

    for (int i = 0; i < REALS; i++)
        if (reals[i].option == option) {
            double *value = (double *)(void *)((char *)w + reals[i].offset);
            if (real_parse(optarg, reals[i].min, reals[i].max, value))
                return COMMAND_DONE;
            return command_usage(&command_model, "--%s %s: not a number of %g to %g", reals[i].name, optarg, reals[i].min,
                                 reals[i].max);
        }
    switch (option) {
    case 'n':
        w->count = numbers_parse(optarg, NODES_LIMIT, w->nodes);
        if (w->count <= 0)
            return command_usage(&command_model, "--nodes %s: not 1 to %d numbers of 1 to %d with commas between them", optarg,
                                 NUMBERS_MOST, NODES_LIMIT);
        return COMMAND_DONE;
    case 'B':
        if (number_parse(optarg, 1, BATCH_LIMIT, &number) < 0)
            return command_usage(&command_model, "--batch %s: not a number of 1 to %d", optarg, BATCH_LIMIT);
        w->batch = (uint32_t)number;
        return COMMAND_DONE;
    case 'C':
        w->mount = optarg;
        return COMMAND_DONE;
    case 's':
        if (number_parse(optarg, 1, SECONDS_LIMIT, &number) < 0)
            return command_usage(&command_model, "--seconds %s: not a number of 1 to %d", optarg, SECONDS_LIMIT);
        w->seconds = (uint32_t)number;
        return COMMAND_DONE;
    case 'j':
        w->json = true;
        return COMMAND_DONE;
    default:
        w->plot = optarg;
        return COMMAND_DONE;
    }
}

/* What is measured need not be given, and what is given is not taken from what is measured. */
static void take_measured(struct world *w)
{
    const struct calibration *c = &w->measured;

    w->samples = w->samples > 0 ? w->samples : (double)c->samples;
    w->cached = w->cached >= 0 ? w->cached : c->cached;
    w->storage = w->storage > 0 ? w->storage : c->storage;
    w->cache = w->cache > 0 ? w->cache : c->cache;
    w->balance = w->balance > 0 ? w->balance : c->balance;
    w->preprocess = w->preprocess > 0 ? w->preprocess : c->preprocess;
}

static int check(struct world *w)
{
    for (int i = 0; i < REALS; i++)
        if (reals[i].required && *(const double *)(const void *)((const char *)w + reals[i].offset) == 0)
            return command_usage(&command_model, "--%s is needed%s", reals[i].name,
                                 w->mount ? ": it was not to be measured" : "");
    if (w->count == 0)
        return command_usage(&command_model, "--nodes is needed");
    if (w->balance == 0)
        w->balance = w->cache;
    if (w->preprocess == 0)
        w->preprocess = INFINITY;
    if (w->cached < 0)
        w->cached = 1;
    return COMMAND_DONE;
}

static int answer(struct world *w)
{
    struct cost cost[NUMBERS_MOST] = {0};
    bool model = !w->mount || w->count > 0 || w->train > 0 || w->plot; /* else only the measured is asked for */

    if (model && w->mount && (w->count == 0 || w->train == 0))
        return command_usage(&command_model, "--%s is needed", w->count == 0 ? "nodes" : "train-rate");
    int status = w->mount ? calibrate(w->mount, w->seconds, &w->measured) : COMMAND_DONE;
    if (status)
        return status;
    if (w->mount)
        take_measured(w);
    status = model ? check(w) : COMMAND_DONE;
    if (!status)
        status = evaluate(w, cost);
    return status ? status : print(w, cost);
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        {"samples", required_argument, NULL, 'd'},      {"nodes", required_argument, NULL, 'n'},
        {"train-rate", required_argument, NULL, 'v'},   {"storage-rate", required_argument, NULL, 'r'},
        {"cache-rate", required_argument, NULL, 'c'},   {"balance-rate", required_argument, NULL, 'b'},
        {"preprocess-rate", required_argument, NULL, 'u'}, {"cached", required_argument, NULL, 'a'},
        {"beta", required_argument, NULL, 'e'},         {"batch", required_argument, NULL, 'B'},
        {"calibrate", required_argument, NULL, 'C'},    {"seconds", required_argument, NULL, 's'},
        {"json", no_argument, NULL, 'j'},               {"plot", required_argument, NULL, 'p'},
        {0}};
    struct world w = {.cached = -1, .beta = -1, .batch = 32, .seconds = CALIBRATE_SECONDS};
    int option, status;

    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return command_bad_option(&command_model, option, argv);
        status = take_option(&w, option);
        if (status)
            return status;
    }
    if (optind < argc)
        return command_usage(&command_model, "%s: no such argument", argv[optind]);
    return answer(&w);
}

const struct command command_model = {
    .name = "model",
    .arguments = "[--calibrate MOUNTPOINT] --samples D --nodes P,... --train-rate V --storage-rate R --cache-rate Rc [...]",
    .summary = "tell what an epoch costs, and where storage binds",
    .help = "  --samples D           of the dataset\n"
            "  --nodes P,...         numbers of nodes\n"
            "  --train-rate V        samples a second that a node trains with\n"
            "  --storage-rate R      that the storage gives, to all together\n"
            "  --cache-rate Rc       that nodes give each other\n"
            "  --balance-rate Rb     the same for balancing; as --cache-rate\n"
            "  --preprocess-rate U   that a node preprocesses; without end\n"
            "  --cached A            share of the dataset that the nodes keep, 0 to 1; 1\n"
            "  --beta B              share of the kept that must move; simulated\n"
            "  --batch N             samples of a step on one node, for that simulation; 32\n"
            "  --calibrate MOUNT     measure the rates of a mount, and take them where none is given\n"
            "  --seconds S           how long each of them is measured; 3\n"
            "  --json                JSON instead of a table\n"
            "  --plot FILE           also draw lines, as SVG\n",
    .run = run,
};
