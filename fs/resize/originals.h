/* Reads whole originals from the source, checked against its catalog, for resizing. */
#ifndef FS_RESIZE_ORIGINALS_H
#define FS_RESIZE_ORIGINALS_H

#include "fs/base/str.h"
#include "fs/catalog/derived.h"
#include "fs/image/image.h"
#include "fs/store/layer.h"

/* Larger files stay unchanged. */
#define ORIGINALS_MOST (UINT64_C(64) << 20)

/* Results in a derived catalog's records: DERIVED_MADE, or OUTCOME_PASSES plus the verdict. */
enum {
    OUTCOME_PASSES = 2,
    OUTCOME_LASTING = OUTCOME_PASSES + IMAGE_SMALL, /* up to here: the result is always the same for the same file */
    OUTCOME_UNREADABLE = OUTCOME_PASSES + IMAGE_VERDICTS,
    OUTCOMES
};
const char *outcome_name(uint32_t outcome); /* a word */

/* Counts over all files. */
struct outcome_counts {
    uint64_t files[OUTCOMES];
    uint64_t before, after; /* bytes of resized images */
    struct digest digest;
};
void outcomes_count(const struct derived *derived, struct outcome_counts *counts);

/* Appends the file: 0, or the source's -errno. */
int original_read(struct layer *source, const struct catalog *catalog, uint32_t file, struct str *out);
/* The same; but if the file does not begin like a JPEG file, or is too large, only its first bytes. */
int original_read_picture(struct layer *source, const struct catalog *catalog, uint32_t file, struct str *out);

#endif
