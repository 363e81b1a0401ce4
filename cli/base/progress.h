/* Progress of long work: on a terminal a bar with rate and remaining time, elsewhere one line per second. */
#ifndef CLI_BASE_PROGRESS_H
#define CLI_BASE_PROGRESS_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress_now {
    uint64_t files, files_total;
    uint64_t bytes, bytes_total; /* a total of 0: unknown */
};

struct progress_bar {
    const char *label;
    FILE *to;
    bool terminal;
    bool drawn;      /* a bar is on the terminal's last line */
    double rate;     /* bytes per second, smoothed; files per second if there are no bytes */
    uint64_t shown;  /* when a line was last written; nanoseconds, monotonic */
    uint64_t marked; /* time of `mark` */
    struct progress_now mark;
};

/* Nothing is written before the first progress_show. `label` is borrowed. */
void progress_begin(struct progress_bar *p, const char *label, FILE *to);
/* May be called at any rate. */
void progress_show(struct progress_bar *p, const struct progress_now *now);
/* Removes the bar from the terminal, so that the next output begins on an empty line. */
void progress_end(struct progress_bar *p);

/* A line without newline, for a terminal of `width` columns; 0: not a terminal, no bar. */
void progress_line(const struct progress_bar *p, const struct progress_now *now, int width, struct str *line);
/* Updates the rate with what is done at `time`. */
void progress_measure(struct progress_bar *p, const struct progress_now *now, uint64_t time);

/* "1,281,167"; the buffer is returned. */
enum { COUNT_TEXT = 32 };
char *count_format(uint64_t number, char *buffer, size_t n);
#define count_text(number) count_format(number, (char[COUNT_TEXT]){0}, COUNT_TEXT) /* until the end of the block */
/* "[######....]" */
void progress_add_bar(struct str *s, double share, int width);

#endif
