/* `dealfs simulate cost`: the cost of the slowest rank divided by the mean, for ranks, batches and windows. */
#include "cli/lab/simulate-cost.h"

#include "cli/lab/commands.h"
#include "cli/lab/cost-simulation.h"
#include "fs/base/file.h"
#include "fs/base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

static void print_row(const struct cost_world *w, const struct cost_result *r)
{
    printf("%6" PRIu32 " %6" PRIu32 " %6" PRIu32 " %12.3f %9.3f %9.3f %8.3f %9.2f %9.2f\n", w->ranks, w->batch,
           w->window, r->regular.ratio, r->locality.ratio, r->balanced.ratio, r->balanced.bound, r->locality.moved,
           r->balanced.moved);
}

static void add_row(struct json *json, const struct cost_world *w, const struct cost_result *r)
{
    json_begin_object(json, NULL);
    json_uints(json, {"ranks", w->ranks}, {"batch", w->batch}, {"window", w->window});
    json_fixed(json, "regular", r->regular.ratio, 4);
    json_fixed(json, "locality", r->locality.ratio, 4);
    json_fixed(json, "cost", r->balanced.ratio, 4);
    json_fixed(json, "bound", r->balanced.bound, 4);
    json_fixed(json, "moved", r->locality.moved, 3);
    json_fixed(json, "moved_cost", r->balanced.moved, 3);
    json_end_object(json);
}

static int parse_distribution(const char *text, enum cost_distribution *distribution)
{
    static const char *const name[] = {
        [COST_LOGNORMAL] = "lognormal", [COST_EXPONENTIAL] = "exponential", [COST_UNIFORM] = "uniform"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (strcmp(text, name[i]) == 0) {
            *distribution = (enum cost_distribution)i;
            return 0;
        }
    return -EINVAL;
}

static int simulate_row(const struct costs_wanted *c, struct cost_world *w, struct json *json)
{
    struct cost_result result;
    int error = cost_simulate(w, &result);
    if (error == -ERANGE)
        return command_fail("simulate: the samples of a window cost more than 2^52 together");
    if (error == -EDOM)
        return command_fail("simulate: %" PRIu32 " steps of %" PRIu32 " ranks with %" PRIu32
                            " samples each exceed the dataset's %" PRIu64 " samples",
                            w->window, w->ranks, w->batch, c->samples);
    if (error)
        return command_fail("simulate: %s", strerror(-error));
    if (c->json)
        add_row(json, w, &result);
    else
        print_row(w, &result);
    return COMMAND_DONE;
}

static int simulate_rows(const struct costs_wanted *c, struct cost_world *w)
{
    CLEANUP_STR struct str text = STR_INIT;
    struct json json = {.out = &text};
    int status = COMMAND_DONE, rows = c->ranks.count * c->batch.count * c->window.count;
    json_begin_array(&json, NULL);
    if (!c->json)
        printf("the slowest rank divided by the mean, %s%s, %" PRIu64 " samples; percent of samples that move\n\n"
               "%6s %6s %6s %12s %9s %9s %8s %9s %9s\n",
               c->costs ? "costs of " : c->distribution, c->costs ? c->costs : " costs", c->samples, "ranks", "batch",
               "window", "Distributed", "locality", "cost", "bound", "moved", "with cost");
    for (int i = 0; i < rows && !status; i++) {
        w->ranks = c->ranks.number[i / c->window.count / c->batch.count];
        w->batch = c->batch.number[i / c->window.count % c->batch.count];
        w->window = c->window.number[i % c->window.count];
        status = simulate_row(c, w, &json);
    }
    json_end_array(&json);
    str_adds(&text, "\n");
    return c->json && !status ? command_print("simulate", &text) : status;
}

/* Little-endian numbers, as they are uploaded. */
static int read_costs(struct costs_wanted *c, struct str *text)
{
    int error = file_read(AT_FDCWD, c->costs, SAMPLES_LIMIT * sizeof(uint32_t), text);
    if (error)
        return command_fail("simulate: read %s: %s", c->costs, strerror(-error));
    if (text->length == 0 || text->length % sizeof(uint32_t))
        return command_fail(
            "simulate: %s has %zu bytes, not a multiple of 4: it needs one number of 32 bits per sample", c->costs,
            text->length);
    c->samples = text->length / sizeof(uint32_t);
    return COMMAND_DONE;
}

int simulate_cost(int argc, char **argv)
{
    struct costs_wanted c = {.ranks = {3, {16, 64, 1024}},
                             .batch = {3, {4, 8, 32}},
                             .window = {2, {1, 8}},
                             .samples = 1281167,
                             .steps = 40,
                             .balance = 1.02,
                             .distribution = "lognormal"};
    CLEANUP_STR struct str text = STR_INIT;
    struct cost_world w = {0};
    struct command command = command_simulate;
    command.options = command.others;
    int status = command_options(&command, &c, argc, argv);
    if (status)
        return status;
    if (argc - optind != 1)
        return command_usage(&command_simulate, "too many arguments");
    if (parse_distribution(c.distribution, &w.distribution))
        return command_usage(&command_simulate, "--distribution %s: must be one of " COST_DISTRIBUTIONS,
                             c.distribution);
    status = c.costs ? read_costs(&c, &text) : COMMAND_DONE;
    if (status)
        return status;
    w.cost = c.costs ? (const uint32_t *)(const void *)text.data : NULL;
    w.samples = (uint32_t)c.samples;
    w.steps = (uint32_t)c.steps;
    w.balance = (uint32_t)(c.balance * 1000000 + 0.5);
    return simulate_rows(&c, &w);
}
