/* JPEG files for tests, of a picture with soft areas, edges and colours. */
#ifndef TESTS_FS_IMAGE_PHOTO_H
#define TESTS_FS_IMAGE_PHOTO_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct photo {
    uint32_t width, height;
    unsigned channels; /* 1, 3, or 4 for CMYK; 0 is 3 */
    bool apart;        /* a scan for each component */
    bool progressive, arithmetic, plain_chroma /* 4:4:4 */;
    unsigned orientation; /* 0: no EXIF data */
    bool intel;           /* the order of its numbers */
    const char *profile;  /* a colour profile, in two markers */
};

void photo_make(const struct photo *photo, struct str *out); /* appended */
/* Where each marker begins, in order; how many. Those within coded data are left out. */
unsigned photo_markers(const struct str *photo, size_t *at, unsigned most);

#endif
