/* Scans the source into the state directory's catalog, with progress on a terminal, and prints a summary. */
#ifndef CLI_MOUNT_SURVEY_H
#define CLI_MOUNT_SURVEY_H

#include "fs/base/str.h"
#include "fs/catalog/scanner.h"

#include <signal.h>
#include <stdio.h>

struct survey {
    const char *source, *path; /* path: of the catalog file */
    int source_fd;
    enum rescan rescan;
    bool kept; /* an SSD may have cached bytes */
    bool ignore_ctime;
    int threads;                       /* maximum concurrent reads of the source */
    int looked;                        /* descriptor with the results of other nodes; 0: none */
    const volatile sig_atomic_t *stop; /* becomes nonzero: -ECANCELED */
    FILE *to;                          /* for the summary and notes, after success */
};

/* The caller closes the catalog. */
int survey_run(const struct survey *survey, struct catalog **catalog, struct str *why);

/* Looks at a part of the files, for the node of the world that scans. 0 or -errno. */
int survey_part(const struct survey *survey, struct scan_part part);

#endif
