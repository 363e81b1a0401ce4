/* Does an entry of the mount equal the source's: type, attributes and every byte? With resize=: does it equal what is
 * made from the source again? */
#ifndef CLI_LIVE_COMPARE_H
#define CLI_LIVE_COMPARE_H

#include "fs/catalog/derived.h"
#include "fs/image/crew.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { COMPARE_BYTES = 1 << 20 };

/* For one thread. */
struct compare {
    int source, mount;        /* descriptors of the roots */
    char *buffer[2];          /* COMPARE_BYTES each */
    _Atomic uint64_t *bytes;  /* total number of compared bytes */
    bool (*stop)(void *user); /* called for every piece; true: the result no longer matters */
    void *user;
    /* With resize=: the records of resized files, and the crew that makes them again; else NULL. */
    const struct derived *derived;
    struct crew *crew;
    bool acls;                      /* the mount's modes must respect ACLs; otherwise they may */
    _Atomic uint64_t *without_acls; /* see state_limit_mode */
    struct str difference;          /* a line with path, place and both sides */
};

enum compare_result {
    COMPARE_SAME,
    COMPARE_DIFFERS,    /* see `difference` */
    COMPARE_UNREADABLE, /* this user may read it on neither side, or not in the source */
    COMPARE_STOPPED,
};

/* Compares the file, symlink or directory at a relative path ("" is the root), but not the contents of a directory. The
 * file's pages are first dropped from the mount's page cache, so that the cached data is read. */
enum compare_result compare_entry(struct compare *c, const char *path);

#endif
