/* Plain charts as SVG: a frame with a title, axes with ticks, boxes, lines and a legend. */
#ifndef CLI_LAB_CHART_H
#define CLI_LAB_CHART_H

#include "fs/base/str.h"

#include <stdbool.h>

enum { CHART_COLOURS = 8 };

struct chart {
    struct str svg;
    double left, right, top, bottom; /* the values at the edges */
    bool logarithmic;                /* both axes */
    int legends;
};

/* Texts must not have <, > or &. */
void chart_begin(struct chart *c, const char *title, const char *x, const char *y);
/* Ends it; nothing of it is left. An exit status; a failure has been said. */
int chart_write(struct chart *c, const char *path);
void chart_tick_x(struct chart *c, double x, const char *label);
void chart_tick_y(struct chart *c, double y, const char *label);
void chart_line(struct chart *c, int colour, const double *x, const double *y, int n);
void chart_rule(struct chart *c, double x, const char *label); /* upright and dashed, through the frame */
void chart_box(struct chart *c, int colour, double x, double width, const double quartile[5]); /* min … max */
void chart_legend(struct chart *c, int colour, const char *label);

#endif
