/* Current activity of live mounts: the difference of two statuses, one second apart. Pure. */
#ifndef CLI_LIVE_GAUGES_H
#define CLI_LIVE_GAUGES_H

#include "cli/live/figures.h"

#include <stdbool.h>
#include <stdint.h>

enum { GAUGE_RANKS = 64 };

/* A rank's list of the plan that it reads. */
struct rank_gauge {
    struct str json; /* a slice of the status */
    uint64_t rank, epoch;
    double files; /* per second */
    bool guessed;
};

struct node_gauge {
    char *mountpoint;
    struct str status;            /* a slice; empty: the node does not answer */
    double files;                 /* samples of lists per second; if nothing is fed, READs of the server */
    double bytes[FIGURES_PLACES]; /* per second, of loaders and the feeder */
    uint64_t late;                /* samples of the lists below */
    uint64_t slowest;             /* the node whose answers took longest, */
    double slowest_ms;            /* and how long each took; 0: none answered */
    double read_ms;               /* the slowest READ of the last seconds; 0: there was none */
    unsigned ranks;
    struct rank_gauge rank[GAUGE_RANKS];
};

/* From two statuses, `seconds` apart; `before` may be empty: then rates are zero. The gauge refers to `mountpoint` and
 * `status`, which the caller keeps. */
void gauge_read(const struct str *before, const struct str *status, double seconds, struct node_gauge *gauge);

enum gauge_order { GAUGE_BY_NAME, GAUGE_BY_FILES, GAUGE_BY_BYTES, GAUGE_BY_LATE, GAUGE_ORDERS };
extern const char *const gauge_order_names[GAUGE_ORDERS];
void gauges_sort(struct node_gauge *gauges, unsigned n, enum gauge_order by);
void gauges_add_head(struct str *out);
void gauges_add_lines(struct str *out, const struct node_gauge *gauge);
void gauges_add_json(struct str *out, const struct node_gauge *gauges, unsigned n);

#endif
