/* What the tests of scans share: a source and a catalog for the test at hand, scans of it, and what they log. Every
 * function ends the program when the test cannot go on. */
#ifndef TESTS_FS_CATALOG_SCANNING_H
#define TESTS_FS_CATALOG_SCANNING_H

#include "tests/fs/catalog/source.h"

extern char scanning_root[256], scanning_path[256]; /* of the source and the catalog */

void scanning_begin(const char *name); /* an empty source for another test */
void scanning_add_classes(void);       /* 100 files of 200 bytes in 20 directories */
struct catalog *scanning_run(enum rescan how, struct scan_progress *result);

struct digest scanning_digest(const struct catalog *c);
bool same_digest(struct digest a, struct digest b);

/* What is logged from now on is kept, in what is returned, until the end. */
int scanning_log(void);
bool scanning_log_has(int log, const char *text);
void scanning_log_end(int log);

#endif
