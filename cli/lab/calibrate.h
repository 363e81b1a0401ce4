/* The rates of the performance model, measured on a live mount. */
#ifndef CLI_LAB_CALIBRATE_H
#define CLI_LAB_CALIBRATE_H

#include "fs/base/json.h"

#include <stdint.h>

enum { CALIBRATE_SECONDS = 3 };

/* Rates are in samples per second; 0: could not be measured. */
struct calibration {
    uint64_t samples, nodes;
    double cached;     /* fraction of samples that some node has cached */
    double storage;    /* R: what this node alone gets from the source */
    double local;      /* from this node's own shard; in no equation */
    double cache;      /* Rc: all nodes at once, each from all others */
    double balance;    /* Rb: half of the nodes at once, each from one other node */
    double preprocess; /* U: images that this node decodes */
};

/* Takes about `seconds` per rate. Returns an exit status; a failure was printed. */
int calibrate(const char *mountpoint, unsigned seconds, struct calibration *c);

void calibration_print(const struct calibration *c);
void calibration_add(struct json *json, const struct calibration *c); /* adds members to an object */

#endif
