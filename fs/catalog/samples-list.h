/* What a sample list is made of. For the files of this folder only. */
#ifndef FS_CATALOG_SAMPLES_LIST_H
#define FS_CATALOG_SAMPLES_LIST_H

#include "fs/catalog/samples.h"

#include <pthread.h>
#include <stdatomic.h>

/* Where lines begin: one mark every MARK_EVERY samples. */
enum { MARK_EVERY = 256 };
struct samples_text {
    pthread_mutex_t lock; /* all below, which does not change once `made` */
    bool made;
    bool escapes; /* some name needs an escape */
    uint64_t length;
    uint64_t *mark; /* offset of sample i × MARK_EVERY */
};

struct samples {
    atomic_uint references;
    const struct catalog *catalog; /* outlives the list */
    uint32_t count;
    const uint32_t *file; /* NULL: sample i is file i */
    uint32_t *own;        /* frees file, */
    void *map;            /* or unmaps it; both NULL: `all` */
    size_t map_length;
    struct digest digest;
    struct samples_text text;
};

/* A list of `count` files; takes `own` over, and frees it when it fails. With a map, file lies in it. */
struct samples *samples_make(const struct catalog *c, uint32_t *own, uint32_t count);
struct samples *samples_make_mapped(const struct catalog *c, const uint32_t *file, uint32_t count, void *map, size_t n);

/* A growing array of files. */
struct files {
    uint32_t *file;
    uint32_t count;
    size_t capacity;
};
int files_add(struct files *f, uint32_t file); /* 0, -ENOMEM, or -EFBIG */

#endif
