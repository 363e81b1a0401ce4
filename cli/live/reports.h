/* A mount's reports about epochs, in words. */
#ifndef CLI_LIVE_REPORTS_H
#define CLI_LIVE_REPORTS_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct reports_wish {
    bool latest; /* those of the last requested plan; else of `epoch` */
    uint64_t epoch;
};

/* Selects reports from `text`, the file `epochs`, into an array. Returns their number, or -EBADMSG. */
int reports_select(const struct str *text, const struct reports_wish *wish, struct str *array);
/* The array in words. True: it is certain that samples of some list were not read. */
bool reports_add_words(const char *mountpoint, const struct str *array, struct str *out);

#endif
