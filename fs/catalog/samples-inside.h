/* The parts of a sample list. Only the files of this folder may include this. */
#ifndef FS_CATALOG_SAMPLES_INSIDE_H
#define FS_CATALOG_SAMPLES_INSIDE_H

#include "fs/base/scratch.h"
#include "fs/catalog/samples.h"

#include <pthread.h>
#include <stdatomic.h>

/* Offsets of lines: one mark every MARK_EVERY samples. */
enum { MARK_EVERY = 256 };
struct samples_text {
    pthread_mutex_t lock; /* guards the fields below, which are constant once `made` */
    bool made;
    bool escapes; /* some name needs an escape */
    bool percent; /* a list of records: the escape is %XX */
    uint64_t length;
    uint64_t *mark; /* offset of sample i × MARK_EVERY */
};

/* The content of a list. */
struct samples_content {
    uint32_t count;
    const uint32_t *file;        /* if both arrays are NULL, sample i is file i */
    const struct record *record; /* either of the two is set, */
    struct record_traits traits;
    const uint32_t *cost; /* or these costs of another list's samples */
    struct digest of;     /* that list */
};

struct samples {
    atomic_uint references;
    const struct catalog *catalog; /* must outlive the list */
    struct samples_content content;
    uint32_t *own;         /* frees content.file, */
    struct scratch memory; /* or unmaps content.record, */
    void *map;             /* or unmaps either; all empty: `all` */
    size_t map_length;
    uint32_t *class; /* per top-level directory: its index in ImageFolder's order; NULL: another list */
    struct digest digest;
    struct samples_text text;
    struct {
        bool known;
        struct digest digest; /* samples_path_digest */
    } by_path;                /* guarded by text.lock */
};

uint32_t samples_class(const struct samples *s, uint32_t file); /* for `imagefolder`; other lists: RECORD_NO_LABEL */
/* A list whose content is in the mapping, which it owns; a failure unmaps it. */
struct samples *samples_make_mapped(const struct catalog *c, const struct samples_content *content, void *map,
                                    size_t n);
/* The same for records in scratch memory. */
struct samples *samples_make_scratch(const struct catalog *c, const struct samples_content *content,
                                     struct scratch *memory);
bool record_lies_in(const struct catalog *c, const struct record *record); /* is it within a file of the catalog? */

/* A growing array of files. */
struct files {
    uint32_t *file;
    uint32_t count;
    size_t capacity;
};
int files_add(struct files *f, uint32_t file); /* 0, -ENOMEM, or -EFBIG */
/* Make a list of them; owns them. After an `error`, frees them and returns it. */
int files_to_samples(struct files *f, int error, const struct catalog *c, struct samples **out);

#endif
