/* Ranges of files whose readahead was recently returned to the kernel without bytes: a table in which a new range
 * replaces an old one. The caller locks. */
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
    struct given range[GIVEN_SETS][GIVEN_WAYS]; /* by the span where they begin: the latest ones */
};

void given_note(struct given_table *table, const struct given *range);
/* Does the range overlap one that was returned? `folio` is set if it is a part of that one with the size and alignment
 * of a folio. */
bool given_find(struct given_table *table, const struct given *range, bool *folio);

#endif
