/* Scans the source into the state directory's catalog, with progress on a terminal, and prints a summary. */
#ifndef CLI_MOUNT_SURVEY_H
#define CLI_MOUNT_SURVEY_H

#include "fs/base/str.h"
#include "fs/catalog/scanner.h"

#include <stdio.h>

struct survey {
    const char *source, *path; /* path: of the catalog file */
    int source_fd;
    struct scan_options scan; /* `threads`: maximum concurrent reads of the source. Without `progress` */
    FILE *to;                 /* for the summary and notes, after success */
};

/* The caller closes the catalog. -ECANCELED: a signal was caught (interrupt.h). */
int survey_run(const struct survey *survey, struct catalog **catalog, struct str *why);

/* Looks at a part of the files, for the node of the world that scans. 0 or -errno. */
int survey_part(const struct survey *survey, struct scan_part part);

#endif
