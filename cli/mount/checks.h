/* Checks of what a machine needs to run dealfs. */
#ifndef CLI_MOUNT_CHECKS_H
#define CLI_MOUNT_CHECKS_H

#include "fs/base/str.h"

#include <stdbool.h>

enum check_level { CHECK_OK, CHECK_NOTE, CHECK_WARNING, CHECK_PROBLEM };

struct finding {
    enum check_level level;
    struct str text;    /* what was found; the caller frees it */
    const char *advice; /* what to do about it; only for a warning or problem */
};

typedef void machine_check(struct finding *finding);
extern machine_check *const checks[]; /* ends with NULL */
/* The checks without which no mount of this user works: 0, or -ENODEV, and `why` also says what to do. */
int checks_for_mount(struct str *why);
void check_ssd(const char *directory, struct finding *finding);        /* as a place for the SSD tier */
void check_inotify_in(const char *directory, struct finding *finding); /* the folder has the limits as files */

/* Is `word` in the list PRUNEFS="…" of an updatedb.conf? */
bool prunefs_names(const char *conf, const char *word);

#endif
