/* A derived catalog: the files of the source, some of which have other bytes, made from the originals.
 *
 * A record describes the result for each file: length and hash. The original catalog and the records together give the
 * derived catalog; file numbers are the same in both. A file in the state directory (FORMAT) has both, so that the next
 * mount need not make unchanged files again. */
#ifndef FS_CATALOG_DERIVED_H
#define FS_CATALOG_DERIVED_H

#include "fs/catalog/catalog.h"

/* Everything that determines the resulting bytes. */
struct derived_terms {
    uint32_t side, quality;
    char library[56];
};

/* values above DERIVED_MADE: the file stays unchanged, for a reason that the maker defines */
enum { DERIVED_UNKNOWN = 0, DERIVED_MADE = 1 };

struct derived_record {
    uint64_t key;     /* of the original file's version */
    uint64_t hash;    /* of the resulting bytes: hash64, seed 0 */
    uint32_t size;    /* of the result */
    uint32_t outcome; /* DERIVED_… */
};

/* Results while the mount was up. */
struct derived_counts {
    _Atomic uint64_t remade, failed;
};

struct derived {
    struct derived_terms terms;
    uint32_t files;
    const struct catalog *original;
    struct derived_record *record; /* per file; read-only if it was opened */
    /* private: */
    void *bytes, *map;
    size_t length;
};

/* For a catalog's file, without results. */
int derived_create(int catalog, const struct derived_terms *terms, struct derived **derived);
/* From a file that was written: 0; -EBADMSG; -errno. */
int derived_open(int fd, struct derived **derived);
void derived_close(struct derived *derived);
/* For a created one: the records use the caller's memory from now on. `copied`: copy them there; else use the contents
 * of that memory. */
void derived_keep_in(struct derived *derived, struct derived_record *memory, bool copied);

/* Reuse the results of an earlier one (or NULL) for unchanged files, up to this outcome, if it has the same terms.
 * Returns the number of files without a result. */
uint32_t derived_adopt(struct derived *derived, const struct derived *old, uint32_t most);
/* Length of the file that derived_write writes. */
uint64_t derived_length(const struct catalog *original);
int derived_write(const struct derived *derived, int directory, const char *name); /* atomically */

int derived_write_original(const struct derived *derived, const char *path); /* the original catalog, atomically */

/* The derived catalog as a catalog's file in memory, which the caller frees. Files without a result have size 0. */
int derived_catalog(const struct derived *derived, void **bytes, size_t *length);
/* Enter the result for one file into these bytes, even while they are open as a catalog. Sizes above 4 MiB must not
 * change. */
void derived_put(const struct derived *derived, uint32_t file, void *bytes);
/* Of the terms and all records. */
struct digest derived_digest(const struct derived *derived);

#endif
