/* Originals, read whole from the source as its catalog knows them, to be made smaller. */
#ifndef FS_RESIZE_ORIGINALS_H
#define FS_RESIZE_ORIGINALS_H

#include "fs/base/str.h"
#include "fs/catalog/derived.h"
#include "fs/image/image.h"
#include "fs/store/layer.h"

/* Up to this size: what is larger passes as it is. */
#define ORIGINALS_MOST (UINT64_C(64) << 20)

/* What became of a file, in a derived catalog's records: DERIVED_MADE, or this and its verdict. */
enum {
    OUTCOME_PASSES = 2,
    OUTCOME_LASTING = OUTCOME_PASSES + IMAGE_SMALL, /* up to here: the same again for the same file */
    OUTCOME_UNREADABLE = OUTCOME_PASSES + IMAGE_VERDICTS,
    OUTCOMES
};
const char *outcome_name(uint32_t outcome); /* a word */

/* Of all files, by looking at each. */
struct outcome_counts {
    uint64_t files[OUTCOMES];
    uint64_t before, after; /* bytes of what was made */
    struct digest digest;
};
void outcomes_count(const struct derived *derived, struct outcome_counts *counts);

/* Appends the file: 0, or the source's -errno. */
int original_read(struct layer *source, const struct catalog *catalog, uint32_t file, struct str *out);
/* The same, but only the first bytes of what does not begin as a JPEG file does, or is too large. */
int original_read_picture(struct layer *source, const struct catalog *catalog, uint32_t file, struct str *out);

#endif
