/* libjpeg with errors under control: it would end the process if an error handler returned. Here the handler jumps out
 * of the body with the reason, and prints nothing on stderr. */
#ifndef FS_IMAGE_CODEC_INSIDE_H
#define FS_IMAGE_CODEC_INSIDE_H

#include "fs/image/image.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

struct codec_guard {
    struct jpeg_error_mgr manager;     /* first: libjpeg knows only this */
    struct jpeg_progress_mgr progress; /* counts the scans */
    unsigned scans;                    /* maximum number of scans */
    bool lenient;                      /* ignore damage that the library can skip */
    enum image_verdict verdict;
    struct image_reason reason;
    jmp_buf back;
};

void codec_guard_init(struct codec_guard *guard);
/* Runs a body that calls libjpeg; all its objects use this guard's `err`. */
enum image_verdict codec_guarded(struct codec_guard *guard, void (*body)(void *), void *user);
/* Leaves the body with our own reason. */
_Noreturn void codec_give_up(struct codec_guard *guard, enum image_verdict verdict, const char *reason);
void codec_tell(const struct codec_guard *guard, struct image_reason *reason); /* may be NULL */

/* Reads an image; zeroed by the initialiser, and destroyed even if it was never created. */
struct codec_reader {
    struct jpeg_decompress_struct codec;
    struct codec_guard guard;
    const void *bytes;
    size_t length;
    struct image_limits limits;
};

void codec_reader_init(struct codec_reader *reader, const void *bytes, size_t n, const struct image_limits *limits);
void codec_reader_fini(struct codec_reader *reader);
/* In a body: reads the header, keeping up to `profile` bytes of each marker that may contain a colour profile; gives up
 * on what cannot be decoded. */
void codec_reader_open(struct codec_reader *reader, unsigned profile, struct image_info *info);

/* How image_decoded scales down, in eighths, and whether it exchanges width and height. */
enum { DECODED_EIGHTHS = 8 };
uint32_t decoded_scale(const struct image_info *info, const struct image_wish *wish);
bool decoded_transposed(const struct image_info *info, const struct image_wish *wish);

bool codec_is_profile(const struct jpeg_marker_struct *marker);

#endif
