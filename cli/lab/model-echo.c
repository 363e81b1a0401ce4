/* Implements model-echo.h. */
#include "cli/lab/model-echo.h"

#include "cli/lab/chart.h"

#include <math.h>
#include <stdio.h>

static double step_upstream(const struct model_echo *m)
{
    return m->batch / m->upstream;
}

static double steps_downstream(const struct model_echo *m, double e)
{
    return e * m->batch / m->train;
}

static double step_cost(const struct model_echo *m, double e)
{
    return fmax(step_upstream(m), steps_downstream(m, e));
}

/* The factor up to which echoes are free. */
static double free_up_to(const struct model_echo *m)
{
    return m->train / m->upstream;
}

void model_echo_print(const struct model_echo *m)
{
    printf("seconds per upstream step and its e training steps; *: training takes longer\n\n");
    printf("%6s %11s %11s %11s  %11s %11s\n", "e", "upstream", "training", "both", "samples/s", "fresh/s");
    for (int i = 0; i < m->factors.count; i++) {
        double e = m->factors.number[i], cost = step_cost(m, e);
        printf("%6.4g %11.4g %11.4g %11.4g%s %11.4g %11.4g\n", e, step_upstream(m), steps_downstream(m, e), cost,
               cost > step_upstream(m) ? "*" : " ", e * m->batch / cost, m->batch / cost);
    }
    printf("\nUp to e = V/U = %.4g echoes are free.\n", free_up_to(m));
}

void model_echo_add(struct json *json, const struct model_echo *m)
{
    json_begin_object(json, "echo");
    json_fixed(json, "free_up_to", free_up_to(m), 6);
    json_begin_array(json, "costs");
    for (int i = 0; i < m->factors.count; i++) {
        double e = m->factors.number[i];
        json_begin_object(json, NULL);
        json_fixed(json, "e", e, 6);
        json_fixed(json, "upstream", step_upstream(m), 6);
        json_fixed(json, "training", steps_downstream(m, e), 6);
        json_fixed(json, "step", step_cost(m, e), 6);
        json_fixed(json, "fresh", m->batch / step_cost(m, e), 6);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

static void draw_line(struct chart *c, int colour, const struct model_echo *m,
                      double (*cost)(const struct model_echo *, double), const char *label)
{
    double x[NUMBERS_MOST], y[NUMBERS_MOST];
    for (int i = 0; i < m->factors.count; i++) {
        x[i] = m->factors.number[i];
        y[i] = cost(m, x[i]);
    }
    chart_line(c, colour, x, y, m->factors.count);
    chart_legend(c, colour, label);
}

/* The edges: from zero to the maximum, with some margin. */
static void set_edges(const struct model_echo *m, struct chart *c)
{
    for (int i = 0; i < m->factors.count; i++) {
        c->right = fmax(c->right, 1.05 * m->factors.number[i]);
        c->top = fmax(c->top, 1.1 * step_cost(m, m->factors.number[i]));
    }
}

int model_echo_plot(const struct model_echo *m, const char *path)
{
    enum { TICKS = 5 };
    struct chart c = {0};
    char label[64];
    set_edges(m, &c);
    chart_begin(&c, "Time of a step upstream", "echoing factor", "seconds");
    for (int i = 0; i <= TICKS; i++) {
        snprintf(label, sizeof label, "%.3g", c.top * i / TICKS);
        chart_tick_y(&c, c.top * i / TICKS, label);
    }
    for (int i = 0; i < m->factors.count; i++) {
        snprintf(label, sizeof label, "%g", m->factors.number[i]);
        chart_tick_x(&c, m->factors.number[i], label);
    }
    if (free_up_to(m) < c.right)
        chart_rule(&c, free_up_to(m), "echoing is free up to here");
    draw_line(&c, CHART_COLOURS - 1, m, steps_downstream, "training alone");
    draw_line(&c, 0, m, step_cost, "upstream and training");
    return chart_write(&c, path);
}
