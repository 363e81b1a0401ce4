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

/* A list of `count` files that lie in the map, which is taken over, and unmapped when it fails. */
struct samples *samples_make_mapped(const struct catalog *c, const uint32_t *file, uint32_t count, void *map, size_t n);

/* A growing array of files. */
struct files {
    uint32_t *file;
    uint32_t count;
    size_t capacity;
};
int files_add(struct files *f, uint32_t file); /* 0, -ENOMEM, or -EFBIG */
/* The list of them; takes them over. After an `error` in gathering them they are freed, and it is returned. */
int files_to_samples(struct files *f, int error, const struct catalog *c, struct samples **out);

#endif
