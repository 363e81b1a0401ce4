/* The reports of epochs that a mount gives, in words. */
#ifndef CLI_LIVE_REPORTS_H
#define CLI_LIVE_REPORTS_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct reports_wish {
    bool latest; /* those of the plan that was asked for last; else of `epoch` */
    uint64_t epoch;
};

/* Of `text`, the file `epochs`: those that are wished for, an array again. How many there are, or -EBADMSG. */
int reports_select(const struct str *text, const struct reports_wish *wish, struct str *array);
/* The same array for people. True: of some list it is sure that samples were not read. */
bool reports_add_words(const char *mountpoint, const struct str *array, struct str *out);

#endif
