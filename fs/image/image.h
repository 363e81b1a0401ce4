/* JPEG images in memory: looked at, decoded, made smaller, encoded.
 *
 * Nothing here opens a file, starts a thread, writes a line or ends the process. Whatever the bytes are, a function
 * returns, within its limits, and says what is wrong with them. All may be called by many threads at once. Pixels lie
 * in buffers of the caller: rows from the top, without gaps, 1 (grey) or 3 (red, green, blue) bytes per pixel. */
#ifndef FS_IMAGE_IMAGE_H
#define FS_IMAGE_IMAGE_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an image is, for who wants pixels of it. */
enum image_verdict {
    IMAGE_FINE,
    IMAGE_NOT_JPEG,    /* by its first bytes, whatever its name says */
    IMAGE_EMPTY,       /* no width or no height */
    IMAGE_TRUNCATED,   /* ends too early */
    IMAGE_CORRUPT,     /* anything else that its format does not allow */
    IMAGE_COLOURS,     /* neither grey nor three colours: CMYK and the like */
    IMAGE_UNSUPPORTED, /* a kind of JPEG that the library cannot decode: 12 bits, lossless, hierarchical */
    IMAGE_LIMIT,       /* more pixels, scans or memory than the limits say */
    IMAGE_SMALL,       /* nothing to do: not larger than asked for */
    IMAGE_NO_MEMORY,   /* this and the next may be otherwise another time */
    IMAGE_CRASHED,     /* the process that worked on it has died, or was stopped: see crew.h */
};
enum { IMAGE_VERDICTS = IMAGE_CRASHED + 1 };

const char *image_verdict_name(enum image_verdict verdict); /* a word, to be counted by: "truncated" */

/* The reason in words, the library's where it gave one; empty where all is fine. */
struct image_reason {
    char text[200];
};

struct image_limits {
    uint64_t pixels; /* of the whole image, as its header says */
    uint64_t memory; /* for the coefficients of progressive images */
    unsigned scans;  /* of progressive images: a small file can have very many, */
    uint64_t work;   /* and each goes through all pixels: scans times pixels; 0: no limit */
};
enum { IMAGE_PIXELS_MOST = 256 << 20 };
extern const struct image_limits image_limits_usual; /* 256 Mi pixels, 1 GiB, 100 scans, 3 Gi pixels in all */

enum { IMAGE_SIDE_MOST = 65535 };

struct image_info {
    uint32_t width, height; /* as stored: before the orientation is applied */
    unsigned components;    /* 1 or 3 */
    unsigned orientation;   /* EXIF's, 1 to 8; 1 where there is none */
    bool progressive, arithmetic, profile;
    bool scans; /* several: its coefficients are in memory while it is decoded; also of one that is not progressive */
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

/* By the first bytes alone. */
bool image_is_jpeg(const void *bytes, size_t n);

/* From the header. What it finds fine can still be damaged further on. On a bad verdict `info` has what was found, or
 * zeros. `limits` NULL: the usual ones; `reason` may be NULL, here and below. */
enum image_verdict image_probe(const void *bytes, size_t n, const struct image_limits *limits, struct image_info *info,
                               struct image_reason *reason);

struct image_wish {
    struct image_limits limits; /* all zero: the usual ones */
    uint32_t side;     /* the shorter side may be made smaller in decoding, but stays at least this; 0: all pixels */
    unsigned channels; /* 1 or 3. Grey images asked for 3 have three equal ones; 1 is for grey images alone */
    bool upright;      /* turned as the orientation says */
    bool lenient;      /* damage that the library can pass over is no error, except an image that is cut short */
};

/* The size of what image_decode will give; `data` is NULL. */
struct image_pixels image_decoded(const struct image_info *info, const struct image_wish *wish);

/* `pixels` is from image_decoded, with memory. On a bad verdict the memory may have been written. */
enum image_verdict image_decode(const void *bytes, size_t n, const struct image_wish *wish, struct image_pixels *pixels,
                                struct image_reason *reason);

/* The size with that shorter side and the same shape, the longer side rounded down (as torchvision's Resize does).
 * Returns whether that is smaller: nothing is ever made larger, and then both stay as they are. */
bool image_fit(uint32_t side, uint32_t *width, uint32_t *height);

/* Lanczos with three lobes, widened by the scale, so that nothing aliases; in integers, the same everywhere. `to` has
 * size and memory, as many channels as `from`, and neither side larger than its. False: not so, or no memory. */
bool image_resize(const struct image_pixels *from, const struct image_pixels *to);

struct image_encoding {
    unsigned quality;     /* 1 to 100 */
    unsigned orientation; /* EXIF's, kept in the file: 0 or 1 writes none */
    bool optimise;        /* Huffman tables of its own: a few percent smaller, slower */
    size_t most;          /* bytes; more is IMAGE_LIMIT. 0: no limit */
    /* The image it was made of, for its colour profile; or NULL. */
    const void *original;
    size_t original_length;
};

/* Appends a baseline JPEG file: grey, or YCbCr with 4:2:0. On a bad verdict `out` is as it was. */
enum image_verdict image_encode(const struct image_pixels *pixels, const struct image_encoding *encoding,
                                struct str *out, struct image_reason *reason);

/* All of it: appended to `out` is the file of the image with that shorter side. IMAGE_SMALL: it has no longer one. */
struct image_shrinking {
    uint32_t side;
    unsigned quality;
    struct image_limits limits; /* all zero: the usual ones */
};
enum image_verdict image_shrink(const void *bytes, size_t n, const struct image_shrinking *wanted, struct str *out,
                                struct image_reason *reason);

/* What decides, beside size and quality, which bytes image_shrink makes: the library's version, and our filter's. */
const char *image_library(void);

#endif
