/* What readahead was given back to the kernel lately: a table of ranges of files, where a new one takes the place of an
 * old one. No lock of its own. */
#ifndef FS_FUSE_GIVEN_H
#define FS_FUSE_GIVEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GIVEN_SETS = 512, GIVEN_WAYS = 8 };

struct given {
    uint64_t offset;
    size_t size;
    uint32_t file;
};

/* Zero at first. */
struct given_table {
    unsigned count;
    struct given range[GIVEN_SETS][GIVEN_WAYS]; /* by where they begin: the latest of them */
};

void given_note(struct given_table *table, const struct given *range);
/* Does it overlap one that was given back? `folio` is set when it is a part of that one, of a folio's size and where
 * such a folio may lie. */
bool given_find(struct given_table *table, const struct given *range, bool *folio);

#endif
