/* The entries of one directory, between the source and the records of a branch. */
#ifndef FS_CATALOG_ENTRY_H
#define FS_CATALOG_ENTRY_H

#include "fs/catalog/tree.h"

enum entry_kind { ENTRY_NONE, ENTRY_DIRECTORY, ENTRY_FILE, ENTRY_LINK };

struct scan_entry {
    const char *name;
    char *target; /* of a symlink; freed by the code that made the entry */
    struct file_state state;
    uint64_t blocks;
    int64_t version;
    uint32_t attribute;
    uint16_t length;
    uint8_t kind;
};

/* By name as bytes. If two have the same name (the directory changed while it was read), the first stays. */
int entries_sort(struct scan_entry **list, size_t *count);

/* Make the records and children of a branch from its sorted entries. 0, -ENOMEM, or -EFBIG. */
int entries_to_branch(struct scan_entry *const *list, size_t count, const struct catalog *old, struct branch *n);

#endif
