/* Is an entry of the mount what the source has: type, attributes and every byte? Of a mount with resize=, what is made
 * of the source again? */
#ifndef CLI_LIVE_COMPARE_H
#define CLI_LIVE_COMPARE_H

#include "fs/catalog/derived.h"
#include "fs/image/crew.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { COMPARE_BYTES = 1 << 20 };

/* Of one thread. */
struct compare {
    int source, mount;        /* the roots */
    char *buffer[2];          /* COMPARE_BYTES each */
    _Atomic uint64_t *bytes;  /* counts what has been compared */
    bool (*stop)(void *user); /* asked for every piece: has the rest become pointless? */
    void *user;
    /* A mount with resize=: what was made of which file, and who makes it again; else NULL. */
    const struct derived *derived;
    struct crew *crew;
    struct str difference; /* a line that names path, place and both sides */
};

enum compare_result {
    COMPARE_SAME,
    COMPARE_DIFFERS,    /* see `difference` */
    COMPARE_UNREADABLE, /* this user may read it on neither side, or not in the source */
    COMPARE_STOPPED,
};

/* The file, symlink or directory itself at a relative path ("" is the root); what is in a directory is not looked at.
 * The file's pages in the mount's page cache are dropped first, so that what is kept is read and not what was read
 * before. */
enum compare_result compare_entry(struct compare *c, const char *path);

#endif
