/* `dealfs simulate imbalance`: what share of a batch must move between nodes, as the paper's Figure 6 has it. */
#include "cli/lab/commands.h"

#include "cli/lab/chart.h"
#include "cli/lab/imbalance.h"
#include "cli/lab/lab.h"
#include "cli/lab/simulate-cost.h"
#include "fs/base/json.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

static void print_table(const struct simulated *w, const struct imbalance *box)
{
    printf("percent of a global batch that must move, %" PRIu64 " samples, %" PRIu64 " steps\n\n", w->samples,
           w->steps);
    printf("%6s %6s %8s %8s %8s %8s %8s %10s %8s %8s\n", "nodes", "batch", "min", "q1", "median", "q3", "max",
           "transfers", "at least", "lost");
    for (int i = 0; i < w->nodes.count * w->batch.count; i++, box++)
        printf("%6" PRIu32 " %6" PRIu32 " %8.2f %8.2f %8.2f %8.2f %8.2f %10.1f %8.1f %8.2f\n",
               w->nodes.number[i / w->batch.count], w->batch.number[i % w->batch.count], box->min, box->q1, box->median,
               box->q3, box->max, box->transfers, box->transfers_least, box->lost);
    printf("\ntransfers: between nodes, average per step; at least: the smallest possible number\n"
           "lost: percent that a step would take longer, on average, if nothing moved\n");
}

static int print_json(const struct simulated *w, const struct imbalance *box)
{
    CLEANUP_STR struct str text = STR_INIT;
    struct json json = {.out = &text};
    json_begin_array(&json, NULL);
    for (int i = 0; i < w->nodes.count * w->batch.count; i++, box++) {
        json_begin_object(&json, NULL);
        json_uints(&json, {"nodes", w->nodes.number[i / w->batch.count]},
                   {"batch", w->batch.number[i % w->batch.count]});
        json_fixed(&json, "mean", box->mean, 3);
        json_fixed(&json, "median", box->median, 3);
        json_fixed(&json, "q1", box->q1, 3);
        json_fixed(&json, "q3", box->q3, 3);
        json_fixed(&json, "min", box->min, 3);
        json_fixed(&json, "max", box->max, 3);
        json_fixed(&json, "transfers", box->transfers, 3);
        json_fixed(&json, "transfers_least", box->transfers_least, 3);
        json_fixed(&json, "lost", box->lost, 3);
        json_end_object(&json);
    }
    json_end_array(&json);
    str_adds(&text, "\n");
    return command_print("simulate", &text);
}

static double highest(const struct simulated *w, const struct imbalance *box)
{
    double max = 1;
    for (int i = 0; i < w->nodes.count * w->batch.count; i++)
        if (box[i].max > max)
            max = box[i].max;
    return max;
}

static void draw_boxes(const struct simulated *w, const struct imbalance *box, struct chart *c)
{
    char label[64];
    double width = 1.0 / (w->batch.count + 1);
    int every = c->top > 20 ? 5 : c->top > 10 ? 2 : 1;
    chart_begin(c, "Imbalance of global batches before balancing", "nodes", "% of the global batch that must move");
    for (int y = 0; y <= c->top; y += every) {
        snprintf(label, sizeof label, "%d", y);
        chart_tick_y(c, y, label);
    }
    for (int n = 0; n < w->nodes.count; n++) {
        snprintf(label, sizeof label, "%" PRIu32, w->nodes.number[n]);
        chart_tick_x(c, n, label);
        for (int b = 0; b < w->batch.count; b++, box++) {
            const double quartile[5] = {box->min, box->q1, box->median, box->q3, box->max};
            chart_box(c, b, n + (b - (w->batch.count - 1) / 2.0) * width, width * 0.8, quartile);
        }
    }
    for (int b = 0; b < w->batch.count; b++) {
        snprintf(label, sizeof label, "local batch %" PRIu32, w->batch.number[b]);
        chart_legend(c, b, label);
    }
}

static int plot_boxes(const struct simulated *w, const struct imbalance *box)
{
    struct chart chart = {.left = -0.5, .right = w->nodes.count - 0.5, .bottom = 0, .top = highest(w, box) * 1.15};
    draw_boxes(w, box, &chart);
    return chart_write(&chart, w->plot);
}

static int simulate_boxes(const struct simulated *w)
{
    static struct imbalance box[NUMBERS_MOST * NUMBERS_MOST];
    for (int i = 0; i < w->nodes.count * w->batch.count; i++) {
        uint32_t nodes = w->nodes.number[i / w->batch.count], batch = w->batch.number[i % w->batch.count];
        int error = imbalance_simulate(nodes, batch, (uint32_t)w->samples, (uint32_t)w->steps, &box[i]);
        if (error == -ERANGE)
            return command_fail("simulate: batch %" PRIu32 " on %" PRIu32
                                " nodes: the global batch exceeds the %" PRIu64 " samples",
                                batch, nodes, w->samples);
        if (error)
            return command_fail("simulate: %s", strerror(-error));
    }
    if (w->plot) {
        int status = plot_boxes(w, box);
        if (status)
            return status;
    }
    if (w->json)
        return print_json(w, box);
    print_table(w, box);
    return COMMAND_DONE;
}

int simulate_command(int argc, char **argv)
{
    struct simulated w = {.nodes = {3, {16, 64, 256}}, .batch = {3, {32, 64, 128}}, .samples = 1281167, .steps = 1000};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "cost") == 0)
            return simulate_cost(argc, argv);
    int status = command_options(&command_simulate, &w, argc, argv);
    if (status)
        return status;
    if (argc - optind != 1 || strcmp(argv[optind], "imbalance") != 0)
        return command_usage(&command_simulate, "the first argument must be `imbalance` or `cost`");
    return simulate_boxes(&w);
}
