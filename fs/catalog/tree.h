/* What a scan has found so far: a tree of directories in memory, from which the catalog file is written.
 *
 * A branch is one directory. Its files and symlinks are records of the catalog's own format, sorted by name, either in
 * memory of the branch's own or, for a directory that did not change, in the catalog of before. */
#ifndef FS_CATALOG_TREE_H
#define FS_CATALOG_TREE_H

#include "fs/catalog/catalog-inside.h"

#include <pthread.h>
#include <stdatomic.h>

struct branch {
    /* set when the branch is made */
    struct branch *parent; /* NULL: the root */
    const char *name;      /* in memory of the parent, or in the catalog of before */
    size_t name_length;
    size_t path_length; /* of the path below the source */
    uint32_t old;       /* this directory in the catalog of before; 0: none */

    /* set by the one thread that visits it */
    bool gone;       /* vanished in mid-scan: not written */
    bool unreadable; /* in part or as a whole: not trusted by the next scan */
    bool hides;      /* a .dealfs at the root */
    uint32_t attribute;
    int64_t mtime, ctime;
    struct branch *children;            /* an array, sorted by name */
    uint32_t directories, files, links; /* directories: of the array, those gone included */
    const struct format_file *file;
    const struct format_seen *seen; /* beside file, as is version */
    const int64_t *version;
    const struct format_link *link;
    const char *names; /* what the names in file and link are relative to */
    void *own;         /* frees what of these is not in the catalog of before */
    uint32_t specials, links_to_files;
    int fd;              /* for opening the children, or −1 */
    atomic_uint opening; /* children that still need fd */

    /* set by tree-order.c: first of its children of each kind, its number, and its children that are there */
    uint32_t number, first_directory, alive, first_file, first_link;

    struct branch *next; /* in the queue of crawl.c */
};

void branch_init(struct branch *n, struct branch *parent, const char *name, size_t length, uint32_t old);
void branch_fini(struct branch *root);     /* with all below it */
char *branch_path(const struct branch *n); /* below the source; "." for the root; the caller frees; NULL: no memory */

/* Modes and owners, each once. Ids do not change once given; any thread. */
struct attributes {
    pthread_mutex_t lock; /* all below */
    struct format_attribute *list;
    uint32_t count, capacity;
    uint32_t *slot; /* hash table of ids + 1; 0: free */
    uint32_t slots; /* a power of two */
};
/* The ids that one thread met last, so that it rarely takes the lock. */
struct attribute_memory {
    struct {
        struct format_attribute attribute;
        uint32_t id_and_1;
    } slot[64];
};

int attributes_init(struct attributes *a, const struct catalog *old); /* old's keep their ids; NULL: none */
void attributes_fini(struct attributes *a);
int attributes_id(struct attributes *a, struct attribute_memory *memory, const struct stat *st, uint32_t *id);

/* Give every directory its number and the place of its children: the orders that catalog.h promises. */
struct tree_order {
    struct branch **by_number; /* directory i + 1 */
    struct branch **by_path;   /* the order in which their files stand */
    uint64_t directories, files, links;
    uint64_t bytes;
    struct catalog_notes notes;
};
int tree_order_make(struct branch *root, struct tree_order *order); /* -EFBIG: too many; counts are set all the same */
void tree_order_fini(struct tree_order *order);

/* Write the catalog of the tree to an empty file. */
int tree_write(int fd, const struct tree_order *order, const struct attributes *attributes, uint64_t scanned);

#endif
