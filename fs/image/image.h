/* JPEG images in memory: probe, decode, resize, encode.
 *
 * Nothing here opens a file, starts a thread, prints or ends the process. For any bytes, a function returns within its
 * limits and says what is wrong with them. Any number of threads may call. Pixels are in buffers of the caller: rows
 * from the top, without gaps, 1 (grey) or 3 (red, green, blue) bytes per pixel. */
#ifndef FS_IMAGE_IMAGE_H
#define FS_IMAGE_IMAGE_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an image is, for a caller that needs its pixels. */
enum image_verdict {
    IMAGE_FINE,
    IMAGE_NOT_JPEG,    /* by its first bytes, whatever its name */
    IMAGE_EMPTY,       /* no width or no height */
    IMAGE_TRUNCATED,   /* ends too early */
    IMAGE_CORRUPT,     /* violates the format in another way */
    IMAGE_COLOURS,     /* neither grey nor three colours: CMYK and the like */
    IMAGE_UNSUPPORTED, /* a kind of JPEG that the library cannot decode: 12 bits, lossless, hierarchical */
    IMAGE_LIMIT,       /* more pixels, scans or memory than allowed */
    IMAGE_SMALL,       /* nothing to do: not larger than requested */
    IMAGE_NO_MEMORY,   /* this and the next may succeed another time */
    IMAGE_CRASHED,     /* the process that worked on it has died, or was stopped: see crew.h */
};
enum { IMAGE_VERDICTS = IMAGE_CRASHED + 1 };

const char *image_verdict_name(enum image_verdict verdict); /* a word for counters: "truncated" */

/* The reason in words, the library's if it gave one; empty: no problem. */
struct image_reason {
    char text[200];
};

struct image_limits {
    uint64_t pixels; /* of the whole image, by its header */
    uint64_t memory; /* for the coefficients of progressive images */
    unsigned scans;  /* of progressive images: a small file can have very many */
    uint64_t work;   /* each scan goes through all pixels: scans times pixels; 0: unlimited */
};
enum { IMAGE_PIXELS_MOST = 256 << 20 };
extern const struct image_limits image_limits_usual; /* 256 Mi pixels, 1 GiB, 100 scans, 3 Gi pixels in all */

enum { IMAGE_SIDE_MOST = 65535 };

struct image_info {
    uint32_t width, height; /* as stored, before the orientation is applied */
    unsigned components;    /* 1 or 3 */
    unsigned orientation;   /* EXIF's, 1 to 8; 1 if missing */
    bool progressive, arithmetic, profile;
    /* has several scans: its coefficients are in memory while it is decoded. Progressive or not */
    bool scans;
};

struct image_pixels {
    uint8_t *data;
    uint32_t width, height;
    unsigned channels;
};
static inline size_t image_pixels_size(const struct image_pixels *p)
{
    return (size_t)p->width * p->height * p->channels;
}

/* By the first bytes only. */
bool image_is_jpeg(const void *bytes, size_t n);

/* From the header; the rest may still be damaged. After a failure, `info` has what was found, or zeros. `limits` NULL:
 * the usual ones; `reason` may be NULL, here and below. */
enum image_verdict image_probe(const void *bytes, size_t n, const struct image_limits *limits, struct image_info *info,
                               struct image_reason *reason);

struct image_wish {
    struct image_limits limits; /* all zero: the usual ones */
    uint32_t side;              /* decoding may scale down, but the shorter side stays at least this; 0: all pixels */
    unsigned channels;          /* 1 or 3. Grey images with 3 have three equal ones; 1 is only for grey images */
    bool upright;               /* apply the orientation */
    bool lenient;               /* ignore damage that the library can skip, unless the image is truncated */
};

/* The size of image_decode's result; `data` is NULL. */
struct image_pixels image_decoded(const struct image_info *info, const struct image_wish *wish);

/* `pixels` is from image_decoded, with memory. After a failure, the memory may have been written. */
enum image_verdict image_decode(const void *bytes, size_t n, const struct image_wish *wish, struct image_pixels *pixels,
                                struct image_reason *reason);

/* The size with that shorter side and the same aspect ratio, the longer side rounded down (like torchvision's Resize).
 * Returns whether it is smaller; otherwise both stay unchanged, because images are never enlarged. */
bool image_fit(uint32_t side, uint32_t *width, uint32_t *height);

/* Lanczos with three lobes, widened by the scale against aliasing; in integers, the same everywhere. `to` must have
 * size and memory, as many channels as `from`, and no larger side. False: it does not, or no memory. */
bool image_resize(const struct image_pixels *from, const struct image_pixels *to);

struct image_encoding {
    unsigned quality;     /* 1 to 100 */
    unsigned orientation; /* EXIF's, stored in the file: 0 or 1 writes none */
    bool optimise;        /* optimise Huffman tables: a few percent smaller, slower */
    size_t most;          /* maximum bytes; else IMAGE_LIMIT. 0: unlimited */
    /* The original image, for its colour profile; or NULL. */
    const void *original;
    size_t original_length;
};

/* Appends a baseline JPEG file: grey, or YCbCr with 4:2:0. After a failure, `out` is unchanged. */
enum image_verdict image_encode(const struct image_pixels *pixels, const struct image_encoding *encoding,
                                struct str *out, struct image_reason *reason);

/* All steps: appends the file of the image with that shorter side. IMAGE_SMALL: its shorter side is not longer. */
struct image_shrinking {
    uint32_t side;
    unsigned quality;
    struct image_limits limits; /* all zero: the usual ones */
};
enum image_verdict image_shrink(const void *bytes, size_t n, const struct image_shrinking *wanted, struct str *out,
                                struct image_reason *reason);

/* In addition to size and quality, this determines the bytes of image_shrink: versions of the library and of our
 * filter. */
const char *image_library(void);

#endif
