/* `dealfs simulate imbalance`: what share of a batch must move between nodes, as the paper's Figure 6 has it. */
#include "cli/command.h"

#include "cli/chart.h"
#include "cli/imbalance.h"
#include "fs/base/json.h"
#include "fs/base/size.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

enum { NODES_LIMIT = 16384, BATCH_LIMIT = 1 << 20, SAMPLES_DEFAULT = 1281167, SAMPLES_LIMIT = 1000000000,
       STEPS_DEFAULT = 1000, STEPS_LIMIT = 1000000 };

struct wanted {
    uint32_t nodes[NUMBERS_MOST], batch[NUMBERS_MOST];
    int nodes_count, batch_count;
    uint64_t samples, steps;
    bool json;
    const char *plot;
};

static void print_table(const struct wanted *w, const struct imbalance *box)
{
    printf("percent of a global batch that must move, %" PRIu64 " samples, %" PRIu64 " steps\n\n", w->samples, w->steps);
    printf("%6s %6s %8s %8s %8s %8s %8s\n", "nodes", "batch", "min", "q1", "median", "q3", "max");
    for (int i = 0; i < w->nodes_count * w->batch_count; i++, box++)
        printf("%6" PRIu32 " %6" PRIu32 " %8.2f %8.2f %8.2f %8.2f %8.2f\n", w->nodes[i / w->batch_count],
               w->batch[i % w->batch_count], box->min, box->q1, box->median, box->q3, box->max);
}

static bool print_json(const struct wanted *w, const struct imbalance *box)
{
    CLEANUP_STR struct str text = STR_INIT;
    struct json json = {.out = &text};

    json_begin_array(&json, NULL);
    for (int i = 0; i < w->nodes_count * w->batch_count; i++, box++) {
        json_begin_object(&json, NULL);
        json_uint(&json, "nodes", w->nodes[i / w->batch_count]);
        json_uint(&json, "batch", w->batch[i % w->batch_count]);
        json_fixed(&json, "median", box->median, 3);
        json_fixed(&json, "q1", box->q1, 3);
        json_fixed(&json, "q3", box->q3, 3);
        json_fixed(&json, "min", box->min, 3);
        json_fixed(&json, "max", box->max, 3);
        json_end_object(&json);
    }
    json_end_array(&json);
    str_adds(&text, "\n");
    if (text.failed)
        return false;
    fwrite(text.data, 1, text.length, stdout);
    return true;
}

static double highest(const struct wanted *w, const struct imbalance *box)
{
    double max = 1;

    for (int i = 0; i < w->nodes_count * w->batch_count; i++)
        if (box[i].max > max)
            max = box[i].max;
    return max;
}

static void draw(const struct wanted *w, const struct imbalance *box, struct chart *c)
{
    char label[64];
    double width = 1.0 / (w->batch_count + 1);
    int every = c->top > 20 ? 5 : c->top > 10 ? 2 : 1;

    chart_begin(c, "Imbalance of global batches before balancing", "nodes", "% of the global batch that must move");
    for (int y = 0; y <= c->top; y += every) {
        snprintf(label, sizeof label, "%d", y);
        chart_tick_y(c, y, label);
    }
    for (int n = 0; n < w->nodes_count; n++) {
        snprintf(label, sizeof label, "%" PRIu32, w->nodes[n]);
        chart_tick_x(c, n, label);
        for (int b = 0; b < w->batch_count; b++, box++) {
            const double quartile[5] = {box->min, box->q1, box->median, box->q3, box->max};
            chart_box(c, b, n + (b - (w->batch_count - 1) / 2.0) * width, width * 0.8, quartile);
        }
    }
    for (int b = 0; b < w->batch_count; b++) {
        snprintf(label, sizeof label, "local batch %" PRIu32, w->batch[b]);
        chart_legend(c, b, label);
    }
    chart_end(c);
}

static int plot(const struct wanted *w, const struct imbalance *box)
{
    struct chart chart = {.left = -0.5, .right = w->nodes_count - 0.5, .bottom = 0, .top = highest(w, box) * 1.15};

    draw(w, box, &chart);
    int error = chart_write(&chart, w->plot);
    return error ? command_fail("write %s: %s", w->plot, strerror(-error)) : COMMAND_DONE;
}

static int simulate(const struct wanted *w)
{
    static struct imbalance box[NUMBERS_MOST * NUMBERS_MOST];

    for (int i = 0; i < w->nodes_count * w->batch_count; i++) {
        uint32_t nodes = w->nodes[i / w->batch_count], batch = w->batch[i % w->batch_count];
        int error = imbalance_simulate(nodes, batch, (uint32_t)w->samples, (uint32_t)w->steps, &box[i]);
        if (error == -ERANGE)
            return command_fail("simulate: a batch of %" PRIu32 " on %" PRIu32 " nodes is more than the %" PRIu64 " samples",
                                batch, nodes, w->samples);
        if (error)
            return command_fail("simulate: %s", strerror(-error));
    }
    if (w->plot) {
        int status = plot(w, box);
        if (status)
            return status;
    }
    if (!w->json)
        print_table(w, box);
    else if (!print_json(w, box))
        return command_fail("simulate: out of memory");
    return COMMAND_DONE;
}

static int take_list(const char *name, const char *text, uint32_t limit, uint32_t *number, int *count)
{
    *count = numbers_parse(text, limit, number);
    if (*count > 0)
        return COMMAND_DONE;
    return command_usage(&command_simulate, "--%s %s: not 1 to %d numbers of 1 to %" PRIu32 " with commas between them", name,
                         text, NUMBERS_MOST, limit);
}

static int take_option(struct wanted *w, int option)
{
    switch (option) {
    case 'n':
        return take_list("nodes", optarg, NODES_LIMIT, w->nodes, &w->nodes_count);
    case 'b':
        return take_list("batch", optarg, BATCH_LIMIT, w->batch, &w->batch_count);
    case 's':
        if (number_parse(optarg, 1, SAMPLES_LIMIT, &w->samples) < 0)
            return command_usage(&command_simulate, "--samples %s: not a number of 1 to %d", optarg, SAMPLES_LIMIT);
        return COMMAND_DONE;
    case 't':
        if (number_parse(optarg, 1, STEPS_LIMIT, &w->steps) < 0)
            return command_usage(&command_simulate, "--steps %s: not a number of 1 to %d", optarg, STEPS_LIMIT);
        return COMMAND_DONE;
    case 'j':
        w->json = true;
        return COMMAND_DONE;
    default:
        w->plot = optarg;
        return COMMAND_DONE;
    }
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {
        {"nodes", required_argument, NULL, 'n'},   {"batch", required_argument, NULL, 'b'},
        {"samples", required_argument, NULL, 's'}, {"steps", required_argument, NULL, 't'},
        {"json", no_argument, NULL, 'j'},          {"plot", required_argument, NULL, 'p'},
        {0}};
    struct wanted w = {.nodes = {16, 64, 256}, .nodes_count = 3, .batch = {32, 64, 128}, .batch_count = 3,
                       .samples = SAMPLES_DEFAULT, .steps = STEPS_DEFAULT};
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, ":n:b:s:t:jp:", options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return command_bad_option(&command_simulate, option, argv);
        int status = take_option(&w, option);
        if (status)
            return status;
    }
    if (argc - optind != 1 || strcmp(argv[optind], "imbalance") != 0)
        return command_usage(&command_simulate, "what is to be simulated must be `imbalance`");
    return simulate(&w);
}

const struct command command_simulate = {
    .name = "simulate",
    .arguments = "imbalance [--nodes P,...] [--batch B,...] [--samples N] [--steps T] [--json] [--plot FILE]",
    .summary = "simulate how uneven batches fall on nodes",
    .help = "  --nodes P,...    numbers of nodes; 16,64,256\n"
            "  --batch B,...    samples of a step on one node; 32,64,128\n"
            "  --samples N      of the dataset; 1281167\n"
            "  --steps T        steps for each pair; 1000\n"
            "  --json           a list of objects instead of a table\n"
            "  --plot FILE      also draw boxes, as SVG\n",
    .run = run,
};
