/* A derived catalog: the files of the source, some of which have other bytes, made of theirs.
 *
 * A record says what was made of each file: its length and its hash. A process that has the original catalog and
 * the records has the derived catalog; numbers of files are the same in both. A file of it in the state directory
 * (FORMAT) has both, for the next mount, which makes nothing of what has not changed. */
#ifndef FS_CATALOG_DERIVED_H
#define FS_CATALOG_DERIVED_H

#include "fs/catalog/catalog.h"

/* What is made; whatever decides its bytes. */
struct derived_terms {
    uint32_t side, quality;
    char library[56];
};

enum { DERIVED_UNKNOWN = 0, DERIVED_MADE = 1 /* and above: the file passes as it is, for a reason of the maker's */ };

struct derived_record {
    uint64_t key;     /* of the original file's version */
    uint64_t hash;    /* of the bytes that were made: hash64, seed 0 */
    uint32_t size;    /* of those */
    uint32_t outcome; /* DERIVED_… */
};

/* What was made while the mount was up. */
struct derived_counts {
    _Atomic uint64_t remade, failed;
};

struct derived {
    struct derived_terms terms;
    uint32_t files;
    const struct catalog *original;
    struct derived_record *record; /* by file; read-only where it was opened */
    /* its own: */
    void *bytes, *map;
    size_t length;
};

/* Of a catalog's file, with nothing known of any file. */
int derived_create(int catalog, const struct derived_terms *terms, struct derived **derived);
/* Of a file as it was written: 0; -EBADMSG; -errno. */
int derived_open(int fd, struct derived **derived);
void derived_close(struct derived *derived);
/* Of one that was made: the records are in this memory from now on, which the caller keeps; as they are, or where not
 * `copied`, as they lie there. */
void derived_keep_in(struct derived *derived, struct derived_record *memory, bool copied);

/* What an earlier one (or NULL) knows of files that are still the same, up to this outcome, if it was made on the same
 * terms. Returns how many files are unknown after it. */
uint32_t derived_adopt(struct derived *derived, const struct derived *old, uint32_t most);
/* Of the file that this writes. */
uint64_t derived_length(const struct catalog *original);
int derived_write(const struct derived *derived, int directory, const char *name); /* atomically */

int derived_write_original(const struct derived *derived, const char *path); /* its catalog, atomically */

/* The derived catalog, as a catalog's file in memory that the caller frees. What is unknown has size 0. */
int derived_catalog(const struct derived *derived, void **bytes, size_t *length);
/* In these bytes, while they are open as a catalog: what was made of one file. Sizes above 4 MiB must not change. */
void derived_put(const struct derived *derived, uint32_t file, void *bytes);
/* Of the terms and all records. */
struct digest derived_digest(const struct derived *derived);

#endif
