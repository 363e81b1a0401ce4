/* What a scan has found so far: a tree of directories in memory, from which the catalog file is written.
 *
 * A branch is one directory. Its files and symlinks are records in the catalog's format, sorted by name. They are in
 * the branch's own memory or, for an unchanged directory, in the previous catalog. */
#ifndef FS_CATALOG_TREE_H
#define FS_CATALOG_TREE_H

#include "fs/catalog/catalog-inside.h"

#include <pthread.h>
#include <stdatomic.h>

struct branch {
    /* set when the branch is created */
    struct branch *parent; /* NULL: the root */
    const char *name;      /* in the parent's memory, or in the previous catalog */
    size_t name_length;
    size_t path_length; /* of the path below the source */
    uint32_t old;       /* this directory in the previous catalog; 0: none */

    /* set by the thread that visits it */
    bool gone;       /* removed during the scan: not written */
    bool unreadable; /* partly or completely: not trusted by the next scan */
    bool lacking;    /* unreadable for another reason than missing rights */
    bool hides;      /* the source's root has a .dealfs */
    uint32_t attribute;
    int64_t mtime, ctime;
    struct branch *children;            /* an array, sorted by name */
    uint32_t directories, files, links; /* directories: length of the array, including removed ones */
    const struct format_file *file;
    const struct format_seen *seen; /* parallel to `file`, like `version` */
    const int64_t *version;
    const struct format_link *link;
    const char *names; /* base of the names in `file` and `link` */
    void *own;         /* memory of all this that is not in the previous catalog */
    uint32_t specials, links_to_files;
    int fd;              /* for opening the children, or −1 */
    atomic_uint opening; /* number of children that still need fd */

    /* set by tree-order.c: its number, its first child of each kind, and the number of children that exist */
    uint32_t number, first_directory, alive, first_file, first_link;

    struct branch *next; /* next in the queue of crawl.c */
};

void branch_init(struct branch *n, struct branch *parent, const char *name, size_t length, uint32_t old);
void branch_fini(struct branch *root);     /* and everything below it */
char *branch_path(const struct branch *n); /* below the source; "." for the root; the caller frees; NULL: no memory */

/* Modes and owners, each stored once. Ids are constant once assigned; any thread. */
struct attributes {
    pthread_mutex_t lock; /* guards all fields below */
    struct format_attribute *list;
    uint32_t count, capacity;
    uint32_t *slot; /* hash table of ids + 1; 0: free */
    uint32_t slots; /* a power of two */
};
/* The last ids that a thread used, so that it rarely takes the lock. */
struct attribute_memory {
    struct {
        struct format_attribute attribute;
        uint32_t id_and_1;
    } slot[64];
};

int attributes_init(struct attributes *a, const struct catalog *old); /* the ids of `old` stay valid; NULL: none */
void attributes_fini(struct attributes *a);
int attributes_id(struct attributes *a, struct attribute_memory *memory, const struct stat *st, uint32_t *id);

/* Assigns each directory its number and the places of its children: the orders that catalog.h describes. */
struct tree_order {
    struct branch **by_number; /* element i is directory i + 1 */
    struct branch **by_path;   /* the order of their files */
    uint64_t directories, files, links;
    uint64_t bytes;
    struct catalog_notes notes;
};
/* -EFBIG: too many; the counts are set nevertheless */
int tree_order_make(struct branch *root, struct tree_order *order);
void tree_order_fini(struct tree_order *order);

/* Write the tree's catalog to an empty file. */
int tree_write(int fd, const struct tree_order *order, const struct attributes *attributes, uint64_t scanned);

#endif
