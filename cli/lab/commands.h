/* Values of the options of the laboratory's commands. `dealfs` prints their help, dealfs-lab parses them. */
#ifndef CLI_LAB_COMMANDS_H
#define CLI_LAB_COMMANDS_H

#include "cli/base/options.h"
#include "cli/lab/calibrate.h"
#include "cli/lab/model-echo.h"

enum { SAMPLES_LIMIT = 1000000000 };

struct simulated {
    struct option_numbers nodes, batch;
    uint64_t samples, steps;
    bool json;
    const char *plot;
};

struct costs_wanted {
    struct option_numbers ranks, batch, window;
    uint64_t samples, steps;
    double balance;
    const char *distribution, *costs; /* costs: a file */
    bool json;
};

struct modelled {
    double samples; /* D */
    double train, storage, cache, balance,
        preprocess;  /* V, R, Rc, Rb, U: samples per second; U infinite when not given */
    double cached;   /* alpha; below 0: not given */
    double beta;     /* below 0: simulated */
    double exchange; /* Q; below 0: not given, and there is no way LOCAL */
    uint64_t batch, seconds;
    struct option_numbers nodes;
    struct model_echo echo; /* without factors: not asked for */
    bool json;
    const char *plot, *plot_echo;
    const char *mount; /* to be measured; NULL: none */
    struct calibration measured;
};

#endif
