/* What a sample list is made of. For the files of this folder only. */
#ifndef FS_CATALOG_SAMPLES_INSIDE_H
#define FS_CATALOG_SAMPLES_INSIDE_H

#include "fs/base/scratch.h"
#include "fs/catalog/samples.h"

#include <pthread.h>
#include <stdatomic.h>

/* Where lines begin: one mark every MARK_EVERY samples. */
enum { MARK_EVERY = 256 };
struct samples_text {
    pthread_mutex_t lock; /* all below, which does not change once `made` */
    bool made;
    bool escapes; /* some name needs an escape */
    bool percent; /* a list of records: that is %XX */
    uint64_t length;
    uint64_t *mark; /* offset of sample i × MARK_EVERY */
};

/* What a list says. */
struct samples_content {
    uint32_t count;
    const uint32_t *file;        /* both NULL: sample i is file i */
    const struct record *record; /* else one of the two, */
    struct record_traits traits;
    const uint32_t *cost; /* or these, of the samples of another list */
    struct digest of;     /* that one */
};

struct samples {
    atomic_uint references;
    const struct catalog *catalog; /* outlives the list */
    struct samples_content content;
    uint32_t *own;         /* frees content.file, */
    struct scratch memory; /* or unmaps content.record, */
    void *map;             /* or unmaps either; all empty: `all` */
    size_t map_length;
    uint32_t *class; /* by top-level directory: its index among those of ImageFolder; NULL: not that list */
    struct digest digest;
    struct samples_text text;
};

uint32_t samples_class(const struct samples *s, uint32_t file); /* of `imagefolder`; others: RECORD_NO_LABEL */
/* A list whose content lies in the map, which is taken over, and unmapped when it fails. */
struct samples *samples_make_mapped(const struct catalog *c, const struct samples_content *content, void *map,
                                    size_t n);
/* The same of records in scratch memory. */
struct samples *samples_make_scratch(const struct catalog *c, const struct samples_content *content,
                                     struct scratch *memory);
bool record_lies_in(const struct catalog *c, const struct record *record); /* in a file of the catalog */

/* Finds the files of paths, one after the other; zero except catalog and prefixes. */
struct path_search {
    const struct catalog *catalog;
    const char *const *prefixes;
    /* The directory of the path before, as it was written: neighbours mostly share it. */
    const char *directory;
    size_t directory_length;
    uint64_t directory_ino; /* 0: none; set it to 0 when the text of a path changes */
};
int path_search_find(struct path_search *search, const char *path, size_t n, uint32_t *file);
/* Appends why line (or path) `number` is refused. */
void path_search_refuse(const char *unit, uint64_t number, const char *path, size_t n, int error, struct str *why);

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
