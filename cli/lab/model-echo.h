/* The cost of a step with data echoing (Choi et al.): one step upstream, which reads and decodes a batch, serves e
 * steps of training, and overlaps with them: max(t_up, e · t_down). Up to e = t_up / t_down, echoes are free. */
#ifndef CLI_OPTION_MODEL_ECHO_H
#define CLI_OPTION_MODEL_ECHO_H

#include "cli/base/options.h"
#include "fs/base/json.h"

struct model_echo {
    struct option_reals factors; /* e */
    double upstream, train;      /* samples per second of a node */
    double batch;                /* of a node */
};

void model_echo_print(const struct model_echo *m);
void model_echo_add(struct json *json, const struct model_echo *m); /* an object "echo" */
int model_echo_plot(const struct model_echo *m, const char *path);  /* returns an exit status */

#endif
