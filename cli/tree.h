/* Entries of a directory tree by relative path, however deep it is, and directories as sorted lists. */
#ifndef CLI_TREE_H
#define CLI_TREE_H

#include "fs/base/str.h"

#include <stddef.h>
#include <sys/stat.h>

/* Like openat, fstatat without following, and readlinkat, of paths that may be longer than PATH_MAX; "" is the root.
 * A descriptor (closed on exec, no symlink followed at the end) or 0, else -errno. */
int tree_open(int root, const char *path, int flags);
int tree_stat(int root, const char *path, struct stat *st);
int tree_readlink(int root, const char *path, struct str *target); /* appended */

/* What is in a directory, without . and .., sorted by name as bytes. */
struct tree_entry {
    const char *name;
    unsigned char type; /* DT_REG, DT_DIR, DT_LNK…; never DT_UNKNOWN */
};
struct tree_list {
    struct tree_entry *entry;
    size_t count;
    char *names;
};
int tree_list(int root, const char *path, struct tree_list *list);
void tree_list_fini(struct tree_list *list);

#endif
