/* What a machine needs to run dealfs, one check each. */
#ifndef CLI_MOUNT_CHECKS_H
#define CLI_MOUNT_CHECKS_H

#include "fs/base/str.h"

#include <stdbool.h>

enum check_level { CHECK_OK, CHECK_NOTE, CHECK_WARNING, CHECK_PROBLEM };

struct finding {
    enum check_level level;
    struct str text;    /* what was found; the caller frees it */
    const char *advice; /* what to do about it; of warnings and problems */
};

typedef void machine_check(struct finding *finding);
extern machine_check *const checks[]; /* ends with NULL */
/* Those of them without which no mount of this user comes up: 0, or -ENODEV, and `why` also says what to do. */
int checks_for_mount(struct str *why);
void check_ssd(const char *directory, struct finding *finding);        /* as a place for the SSD tier */
void check_inotify_in(const char *directory, struct finding *finding); /* which has the limits, as files */

/* Is `word` one of those in the list PRUNEFS="…" of an updatedb.conf? */
bool prunefs_names(const char *conf, const char *word);

#endif
