/* The texts of the generated files. 0, or -ENOMEM. */
#ifndef FS_CONTROL_TEXTS_H
#define FS_CONTROL_TEXTS_H

#include "fs/base/str.h"

struct control;

int control_status(struct control *control, struct str *json);
int control_metrics(struct control *control, struct str *text); /* also for metrics_file */
int control_nodes(struct control *control, struct str *text);
int control_node(struct control *control, struct str *text);
int control_errors(struct control *control, struct str *text);
int control_epochs(struct control *control, struct str *json);

#endif
