/* Scan the source into the state directory's catalog, with progress on a terminal, and say what was found. */
#ifndef CLI_SURVEY_H
#define CLI_SURVEY_H

#include "fs/base/str.h"
#include "fs/catalog/scan.h"

#include <signal.h>
#include <stdio.h>

struct survey {
    const char *source, *path; /* path: of the catalog file */
    int source_fd;
    enum rescan rescan;
    const volatile sig_atomic_t *stop; /* becomes non-zero: -ECANCELED */
    FILE *to;                          /* the summary and the notes, after success */
};

/* The caller closes the catalog. */
int survey_run(const struct survey *survey, struct catalog **catalog, struct str *why);

#endif
