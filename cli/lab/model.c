/* `dealfs model`: what an epoch costs by the performance model of Yang and Cong (equations 1 to 8), over numbers of
 * nodes.
 *
 *   training      D/(pV)                          (1)     preprocessing  D/(pU)              (3)
 *   regular       D/R                             (2)     loading        one of these + (3)  (4)
 *   distributed   (1-a)D/R + aD/Rc (p-1)/p        (7)     epoch          max(training, loading)  (6)
 *   locality      (1-a)D/R + aD/Rb b              (8)     storage binds  p > R/V             (5)
 *
 * and of partial-local shuffling (Nguyen et al.): each node reads its own samples, and between epochs the part Q of
 * them changes its node. The exchange overlaps with an epoch; what it takes longer stays visible.
 *
 *   local         (1-a)D/R                                exchange       aQD/Rc (p-1)/p */
#include "cli/lab/commands.h"

#include "cli/lab/calibrate.h"
#include "cli/lab/chart.h"
#include "cli/lab/imbalance.h"
#include "cli/lab/lab.h"
#include "cli/lab/model-echo.h"
#include "fs/base/json.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum way { REGULAR, DISTRIBUTED, LOCALITY, LOCAL, WAYS };
static const char *const way_names[WAYS] = {"regular", "distributed", "locality", "local"};

enum { SIMULATED_STEPS = 200, SIMULATED_SAMPLES = 1281167 };

struct cost {
    double beta, training, preprocessing;
    double exchange, visible; /* visible: what it takes longer than training and loading */
    struct {
        double io, loading, epoch;
    } way[WAYS];
};

static int ways_of(const struct modelled *w)
{
    return w->exchange >= 0 ? WAYS : LOCAL;
}

/* The samples beyond what a simulation needs only make it slow; fewer than a batch cannot be simulated. */
static int find_beta(const struct modelled *w, uint32_t nodes, double *beta)
{
    struct imbalance box;
    uint64_t least = nodes * w->batch;
    double samples = w->samples < SIMULATED_SAMPLES ? w->samples : SIMULATED_SAMPLES;
    if (w->beta >= 0) {
        *beta = w->beta;
        return 0;
    }
    if (samples < (double)least)
        samples = (double)least < w->samples ? (double)least : w->samples;
    int error = imbalance_simulate(nodes, (uint32_t)w->batch, (uint32_t)samples, SIMULATED_STEPS, &box);
    *beta = error ? 0 : box.mean / 100;
    return error;
}

static struct cost cost_of(const struct modelled *w, uint32_t nodes, double beta)
{
    double d = w->samples, p = nodes;
    struct cost c = {.beta = beta, .training = d / (p * w->train), .preprocessing = d / (p * w->preprocess)};
    double missing = (1 - w->cached) * d / w->storage;
    c.way[REGULAR].io = d / w->storage;
    c.way[DISTRIBUTED].io = missing + w->cached * d / w->cache * (p - 1) / p;
    c.way[LOCALITY].io = missing + w->cached * d * beta / w->balance;
    c.way[LOCAL].io = missing;
    for (int i = 0; i < WAYS; i++) {
        c.way[i].loading = c.way[i].io + c.preprocessing;
        c.way[i].epoch = fmax(c.training, c.way[i].loading);
    }
    c.exchange = w->cached * w->exchange * d / w->cache * (p - 1) / p;
    c.visible = fmax(0, c.exchange - c.way[LOCAL].epoch);
    c.way[LOCAL].epoch += c.visible;
    return c;
}

static void print_table(const struct modelled *w, const struct cost *cost)
{
    double binds = w->storage / w->train;
    printf("seconds per epoch; *: loading takes longer than training\n\n");
    printf("%6s %7s %11s", "nodes", "beta", "training");
    for (int way = 0; way < ways_of(w); way++)
        printf(" %12s", way_names[way]);
    printf("%s\n", w->exchange >= 0 ? "    exchange    visible" : "");
    for (int i = 0; i < w->nodes.count; i++) {
        printf("%6" PRIu32 " %6.2f%% %11.4g", w->nodes.number[i], 100 * cost[i].beta, cost[i].training);
        for (int way = 0; way < ways_of(w); way++)
            printf(" %11.4g%s", cost[i].way[way].epoch, cost[i].way[way].loading > cost[i].training ? "*" : " ");
        if (w->exchange >= 0)
            printf(" %11.4g %10.4g", cost[i].exchange, cost[i].visible);
        printf("\n");
    }
    printf("\nStorage limits regular loading above R/V = %.4g nodes: an epoch then takes D/R = %.4g s with any number "
           "of nodes.\n",
           binds, w->samples / w->storage);
}

static void add_cost(struct json *json, const struct modelled *w, uint32_t nodes, const struct cost *cost)
{
    json_begin_object(json, NULL);
    json_uint(json, "nodes", nodes);
    json_fixed(json, "beta", cost->beta, 6);
    json_fixed(json, "training", cost->training, 6);
    json_fixed(json, "preprocessing", cost->preprocessing, 6);
    json_bool(json, "storage_binds", nodes > w->storage / w->train);
    if (w->exchange >= 0) {
        json_fixed(json, "exchange", cost->exchange, 6);
        json_fixed(json, "visible", cost->visible, 6);
    }
    for (int way = 0; way < ways_of(w); way++) {
        json_begin_object(json, way_names[way]);
        json_fixed(json, "io", cost->way[way].io, 6);
        json_fixed(json, "loading", cost->way[way].loading, 6);
        json_fixed(json, "epoch", cost->way[way].epoch, 6);
        json_end_object(json);
    }
    json_end_object(json);
}

static int print_json(const struct modelled *w, const struct cost *cost)
{
    CLEANUP_STR struct str text = STR_INIT;
    struct json json = {.out = &text};
    json_begin_object(&json, NULL);
    if (w->mount) {
        json_begin_object(&json, "measured");
        calibration_add(&json, &w->measured);
        json_end_object(&json);
    }
    if (w->nodes.count > 0) {
        json_fixed(&json, "binds_above", w->storage / w->train, 6);
        json_begin_array(&json, "costs");
        for (int i = 0; i < w->nodes.count; i++)
            add_cost(&json, w, w->nodes.number[i], &cost[i]);
        json_end_array(&json);
    }
    if (w->echo.factors.count > 0)
        model_echo_add(&json, &w->echo);
    json_end_object(&json);
    str_adds(&text, "\n");
    return command_print("model", &text);
}

/* The edges: whole decades around all epochs, the numbers of nodes given with a little room. */
static void set_edges(const struct modelled *w, const struct cost *cost, struct chart *c)
{
    double low = cost[0].training, high = low;
    c->left = c->right = w->nodes.number[0];
    for (int i = 0; i < w->nodes.count; i++) {
        c->left = fmin(c->left, w->nodes.number[i]);
        c->right = fmax(c->right, w->nodes.number[i]);
        low = fmin(low, cost[i].training);
        for (int way = 0; way < ways_of(w); way++)
            high = fmax(high, cost[i].way[way].epoch);
    }
    c->left /= 1.3;
    c->right *= 1.3;
    c->bottom = pow(10, floor(log10(low)));
    c->top = pow(10, ceil(log10(high)));
    if (c->top <= c->bottom)
        c->top = 10 * c->bottom;
}

static void draw_costs(const struct modelled *w, const struct cost *cost, struct chart *c)
{
    double x[NUMBERS_MOST], y[NUMBERS_MOST], binds = w->storage / w->train;
    char label[64];
    chart_begin(c, "Time of an epoch", "nodes", "seconds");
    for (double tick = c->bottom; tick <= c->top * 1.01; tick *= 10) {
        snprintf(label, sizeof label, "%g", tick);
        chart_tick_y(c, tick, label);
    }
    for (int i = 0; i < w->nodes.count; i++) {
        x[i] = w->nodes.number[i];
        snprintf(label, sizeof label, "%" PRIu32, w->nodes.number[i]);
        chart_tick_x(c, x[i], label);
    }
    if (binds > c->left && binds < c->right)
        chart_rule(c, binds, "storage limits from p = R/V on");
    for (int i = 0; i < w->nodes.count; i++)
        y[i] = cost[i].training;
    chart_line(c, CHART_COLOURS - 1, x, y, w->nodes.count);
    chart_legend(c, CHART_COLOURS - 1, "training alone");
    for (int way = 0; way < ways_of(w); way++) {
        for (int i = 0; i < w->nodes.count; i++)
            y[i] = cost[i].way[way].epoch;
        chart_line(c, way, x, y, w->nodes.count);
        chart_legend(c, way, way_names[way]);
    }
}

static int plot_costs(const struct modelled *w, const struct cost *cost)
{
    struct chart chart = {.logarithmic = true};
    set_edges(w, cost, &chart);
    draw_costs(w, cost, &chart);
    return chart_write(&chart, w->plot);
}

static int evaluate_costs(const struct modelled *w, struct cost *cost)
{
    for (int i = 0; i < w->nodes.count; i++) {
        double beta;
        int error = find_beta(w, w->nodes.number[i], &beta);
        if (error == -ERANGE)
            return command_fail("model: batch %" PRIu64 " on %" PRIu32
                                " nodes: the global batch exceeds the number of samples",
                                w->batch, w->nodes.number[i]);
        if (error)
            return command_fail("model: %s", strerror(-error));
        cost[i] = cost_of(w, w->nodes.number[i], beta);
    }
    int status = w->plot ? plot_costs(w, cost) : COMMAND_DONE;
    return !status && w->plot_echo ? model_echo_plot(&w->echo, w->plot_echo) : status;
}

static int print_costs(const struct modelled *w, const struct cost *cost)
{
    if (w->json)
        return print_json(w, cost);
    if (w->mount) {
        calibration_print(&w->measured);
        if (w->nodes.count > 0)
            printf("\n");
    }
    if (w->nodes.count > 0)
        print_table(w, cost);
    if (w->echo.factors.count > 0) {
        printf("\n");
        model_echo_print(&w->echo);
    }
    return COMMAND_DONE;
}

/* Options that are given take precedence over measured values. */
static void take_measured(struct modelled *w)
{
    const struct calibration *c = &w->measured;
    w->samples = w->samples > 0 ? w->samples : (double)c->samples;
    w->cached = w->cached >= 0 ? w->cached : c->cached;
    w->storage = w->storage > 0 ? w->storage : c->storage;
    w->cache = w->cache > 0 ? w->cache : c->cache;
    w->balance = w->balance > 0 ? w->balance : c->balance;
    w->preprocess = w->preprocess > 0 ? w->preprocess : c->preprocess;
}

static int check_given(struct modelled *w)
{
    for (const struct command_option *o = command_model.options; o->name; o++)
        if (o->required && *(const double *)(const void *)((const char *)w + o->place) == 0)
            return command_usage(&command_model, "--%s is needed%s", o->name,
                                 !w->mount ? ""
                                 : w->measured.nodes < 2
                                     ? ": this mount is in no world, so there are no other nodes to measure it on"
                                     : ": --calibrate does not measure it");
    if (w->nodes.count == 0)
        return command_usage(&command_model, "--nodes is needed");
    if ((w->echo.factors.count > 0) != (w->echo.upstream > 0))
        return command_usage(&command_model, "--echo and --upstream-rate need each other");
    if (w->plot_echo && w->echo.factors.count == 0)
        return command_usage(&command_model, "--plot-echo needs --echo");
    if (w->balance == 0)
        w->balance = w->cache;
    if (w->preprocess == 0)
        w->preprocess = INFINITY;
    if (w->cached < 0)
        w->cached = 1;
    w->echo.train = w->train;
    w->echo.batch = (double)w->batch;
    return COMMAND_DONE;
}

static int answer_model(struct modelled *w)
{
    struct cost cost[NUMBERS_MOST] = {0};
    /* Else only the measured is asked for. */
    bool model = !w->mount || w->nodes.count > 0 || w->train > 0 || w->plot || w->echo.factors.count > 0;
    if (model && w->mount && (w->nodes.count == 0 || w->train == 0))
        return command_usage(&command_model, "--%s is needed", w->nodes.count == 0 ? "nodes" : "train-rate");
    int status = w->mount ? calibrate(w->mount, (unsigned)w->seconds, &w->measured) : COMMAND_DONE;
    if (status)
        return status;
    if (w->mount)
        take_measured(w);
    status = model ? check_given(w) : COMMAND_DONE;
    if (!status)
        status = evaluate_costs(w, cost);
    return status ? status : print_costs(w, cost);
}

int model_command(int argc, char **argv)
{
    struct modelled w = {.cached = -1, .beta = -1, .exchange = -1, .batch = 32, .seconds = CALIBRATE_SECONDS};
    int status = command_options(&command_model, &w, argc, argv);
    if (status)
        return status;
    if (optind < argc)
        return command_usage(&command_model, "%s: no such argument", argv[optind]);
    return answer_model(&w);
}
