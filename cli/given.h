/* A catalog that the world has already, in place of a scan: see start.h. */
#ifndef CLI_GIVEN_H
#define CLI_GIVEN_H

#include "cli/start.h"

/* Installs `s->options.catalog` as the catalog file `path`, and opens it. Refused: what is no catalog, and one of another
 * dataset than the source as this node sees it. */
int given_install(struct start *s, const char *path, struct str *why);

/* The whole of an open file to `path`, atomically. */
int given_copy(int from, const char *path);

#endif
