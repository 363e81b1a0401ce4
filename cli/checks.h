/* What a machine needs to run dealfs, one check each. */
#ifndef CLI_CHECKS_H
#define CLI_CHECKS_H

#include "fs/base/str.h"

#include <stdbool.h>

enum check_level { CHECK_OK, CHECK_NOTE, CHECK_WARNING, CHECK_PROBLEM };

struct finding {
    enum check_level level;
    struct str text;   /* what was found */
    struct str advice; /* what to do about it; of warnings and problems */
};
void finding_fini(struct finding *finding);

struct check {
    void (*run)(const char *ssd, struct finding *finding);
    bool needs_ssd; /* only where a directory for the SSD tier was named */
};
extern const struct check checks[]; /* ends with a run of NULL */

/* Is `word` one of those in the list PRUNEFS="…" of an updatedb.conf? */
bool prunefs_names(const char *conf, const char *word);

#endif
