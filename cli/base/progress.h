/* How far a long piece of work has come: on a terminal a bar with rate and time left, elsewhere a line a second. */
#ifndef CLI_BASE_PROGRESS_H
#define CLI_BASE_PROGRESS_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress_now {
    uint64_t files, files_total;
    uint64_t bytes, bytes_total; /* a total of 0: not known */
};

struct progress_bar {
    const char *label;
    FILE *to;
    bool terminal;
    bool drawn;      /* a bar stands on the terminal's last line */
    double rate;     /* bytes per second, smoothed; files per second where there are no bytes */
    uint64_t shown;  /* when a line was last written; nanoseconds, monotonic */
    uint64_t marked; /* when `mark` was taken */
    struct progress_now mark;
};

/* Nothing is written before the first progress_show. `label` is borrowed. */
void progress_begin(struct progress_bar *p, const char *label, FILE *to);
/* May be called at any rate. */
void progress_show(struct progress_bar *p, const struct progress_now *now);
/* Takes the bar off the terminal, so that what is written next stands on a line of its own. */
void progress_end(struct progress_bar *p);

/* One line without its newline, for a terminal of `width` columns; 0: not a terminal, no bar. */
void progress_line(const struct progress_bar *p, const struct progress_now *now, int width, struct str *line);
/* Bring the rate up to date with what is done at `time`. */
void progress_measure(struct progress_bar *p, const struct progress_now *now, uint64_t time);

/* "1,281,167"; the buffer is returned. */
enum { COUNT_TEXT = 32 };
char *count_format(uint64_t number, char *buffer, size_t n);
/* "[######....]" */
void progress_add_bar(struct str *s, double share, int width);

#endif
