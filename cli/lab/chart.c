/* Charts, written line by line. */
#include "cli/lab/chart.h"

#include "cli/base/command.h"
#include "cli/base/place.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>

enum { WIDTH = 720, HEIGHT = 440, MARGIN_LEFT = 70, MARGIN_RIGHT = 20, MARGIN_TOP = 40, MARGIN_BOTTOM = 55 };
enum { INSIDE_WIDTH = WIDTH - MARGIN_LEFT - MARGIN_RIGHT, INSIDE_HEIGHT = HEIGHT - MARGIN_TOP - MARGIN_BOTTOM };
enum { LEGEND_STEP = 18, LEGEND_WIDTH = 170 };

static const char *const colours[CHART_COLOURS] = {"#1f77b4", "#2ca02c", "#d62728", "#9467bd",
                                                   "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f"};

static double place(const struct chart *c, double from, double to, double value)
{
    return c->logarithmic ? (log(value) - log(from)) / (log(to) - log(from)) : (value - from) / (to - from);
}

static double at_x(const struct chart *c, double x)
{
    return MARGIN_LEFT + INSIDE_WIDTH * place(c, c->left, c->right, x);
}

static double at_y(const struct chart *c, double y)
{
    return MARGIN_TOP + INSIDE_HEIGHT * (1 - place(c, c->bottom, c->top, y));
}

void chart_begin(struct chart *c, const char *title, const char *x, const char *y)
{
    str_addf(&c->svg,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
             "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
             WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT);
    str_addf(&c->svg, "<text x=\"%d\" y=\"24\" font-size=\"16\" text-anchor=\"middle\">%s</text>\n", WIDTH / 2, title);
    str_addf(&c->svg, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", MARGIN_LEFT + INSIDE_WIDTH / 2,
             HEIGHT - 12, x);
    str_addf(&c->svg, "<text transform=\"translate(18 %d) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
             MARGIN_TOP + INSIDE_HEIGHT / 2, y);
    str_addf(&c->svg, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#333\"/>\n",
             MARGIN_LEFT, MARGIN_TOP, INSIDE_WIDTH, INSIDE_HEIGHT);
}

static int write_svg(const struct str *svg, const char *path)
{
    CLEANUP_CLOSE int special = svg->failed ? -ENOMEM : place_open_special(path);
    if (special == -ENOENT)
        return file_write_atomic(AT_FDCWD, path, svg->data, svg->length, 0644);
    return special < 0 ? special : file_write_all(special, svg->data, svg->length);
}

int chart_write(struct chart *c, const char *path)
{
    str_adds(&c->svg, "</svg>\n");
    int error = write_svg(&c->svg, path);
    str_fini(&c->svg);
    return error ? command_fail("write %s: %s", path, strerror(-error)) : COMMAND_DONE;
}

void chart_tick_x(struct chart *c, double x, const char *label)
{
    str_addf(&c->svg,
             "<path d=\"M%.1f %dv5\" stroke=\"#333\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
             at_x(c, x), HEIGHT - MARGIN_BOTTOM, at_x(c, x), HEIGHT - MARGIN_BOTTOM + 20, label);
}

void chart_tick_y(struct chart *c, double y, const char *label)
{
    str_addf(&c->svg,
             "<path d=\"M%d %.1fh%d\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
             MARGIN_LEFT, at_y(c, y), INSIDE_WIDTH, MARGIN_LEFT - 6, at_y(c, y) + 4, label);
}

void chart_line(struct chart *c, int colour, const double *x, const double *y, int n)
{
    str_addf(&c->svg, "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\" points=\"",
             colours[colour % CHART_COLOURS]);
    for (int i = 0; i < n; i++)
        str_addf(&c->svg, "%s%.1f,%.1f", i ? " " : "", at_x(c, x[i]), at_y(c, y[i]));
    str_adds(&c->svg, "\"/>\n");
    for (int i = 0; i < n; i++)
        str_addf(&c->svg, "<circle r=\"3\" fill=\"%s\" cx=\"%.1f\" cy=\"%.1f\"/>\n", colours[colour % CHART_COLOURS],
                 at_x(c, x[i]), at_y(c, y[i]));
}

void chart_rule(struct chart *c, double x, const char *label)
{
    str_addf(&c->svg,
             "<path d=\"M%.1f %dv%d\" stroke=\"#333\" stroke-dasharray=\"5 4\"/>"
             "<text x=\"%.1f\" y=\"%d\" font-size=\"12\">%s</text>\n",
             at_x(c, x), MARGIN_TOP, INSIDE_HEIGHT, at_x(c, x) + 4, HEIGHT - MARGIN_BOTTOM - 8, label);
}

void chart_box(struct chart *c, int colour, double x, double width, const double quartile[5])
{
    double middle = at_x(c, x), half = (at_x(c, x + width) - middle) / 2;
    const char *fill = colours[colour % CHART_COLOURS];
    str_addf(&c->svg, "<path d=\"M%.1f %.1fV%.1fM%.1f %.1fV%.1f\" stroke=\"%s\"/>", middle, at_y(c, quartile[0]),
             at_y(c, quartile[1]), middle, at_y(c, quartile[3]), at_y(c, quartile[4]), fill);
    for (int i = 0; i <= 4; i += 4)
        str_addf(&c->svg, "<path d=\"M%.1f %.1fh%.1f\" stroke=\"%s\"/>", middle - half / 2, at_y(c, quartile[i]), half,
                 fill);
    str_addf(
        &c->svg,
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" fill-opacity=\"0.3\" stroke=\"%s\"/>",
        middle - half, at_y(c, quartile[3]), 2 * half, at_y(c, quartile[1]) - at_y(c, quartile[3]), fill, fill);
    str_addf(&c->svg, "<path d=\"M%.1f %.1fh%.1f\" stroke=\"%s\" stroke-width=\"2\"/>\n", middle - half,
             at_y(c, quartile[2]), 2 * half, fill);
}

void chart_legend(struct chart *c, int colour, const char *label)
{
    int x = WIDTH - MARGIN_RIGHT - LEGEND_WIDTH, y = MARGIN_TOP + 12 + LEGEND_STEP * c->legends++;
    str_addf(&c->svg,
             "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%d\" y=\"%d\">%s</text>\n", x,
             y, colours[colour % CHART_COLOURS], x + 18, y + 11, label);
}
