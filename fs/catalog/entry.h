/* The entries of one directory, on their way from the source into the records of a branch. */
#ifndef FS_CATALOG_ENTRY_H
#define FS_CATALOG_ENTRY_H

#include "fs/catalog/tree.h"

enum entry_kind { ENTRY_NONE, ENTRY_DIRECTORY, ENTRY_FILE, ENTRY_LINK };

struct entry {
    const char *name;
    char *target; /* of a symlink; freed by whoever made the entry */
    uint64_t size;
    int64_t mtime;
    uint32_t attribute;
    uint16_t length;
    uint8_t kind;
};

/* By name as bytes; of two with one name (a directory that changed while it was read) the first stays. */
int entries_sort(struct entry **list, size_t *count);

/* The records and children of a branch from its sorted entries. 0, -ENOMEM, or -EFBIG. */
int entries_to_branch(struct entry *const *list, size_t count, const struct catalog *old, struct branch *n);

#endif
