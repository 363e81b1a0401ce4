/* libjpeg, held: it ends the process where an error handler returns. Here it jumps back out of the body instead, with
 * the reason, and says nothing on stderr. */
#ifndef FS_IMAGE_CODEC_INSIDE_H
#define FS_IMAGE_CODEC_INSIDE_H

#include "fs/image/image.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

struct codec_guard {
    struct jpeg_error_mgr manager;     /* first: libjpeg knows only this */
    struct jpeg_progress_mgr progress; /* counts the scans */
    unsigned scans;                    /* how many are allowed */
    bool lenient;                      /* damage that is passed over is no error */
    enum image_verdict verdict;
    struct image_reason reason;
    jmp_buf back;
};

void codec_guard_init(struct codec_guard *guard);
/* Runs a body that calls libjpeg, all in objects whose `err` is this guard's. */
enum image_verdict codec_guarded(struct codec_guard *guard, void (*body)(void *), void *user);
/* Out of the body: with a reason of our own. */
_Noreturn void codec_give_up(struct codec_guard *guard, enum image_verdict verdict, const char *reason);
void codec_tell(const struct codec_guard *guard, struct image_reason *reason); /* may be NULL */

/* What an image is read with; zeroed by the initialiser, destroyed also when it was never made. */
struct codec_reader {
    struct jpeg_decompress_struct codec;
    struct codec_guard guard;
    const void *bytes;
    size_t length;
    struct image_limits limits;
};

void codec_reader_init(struct codec_reader *reader, const void *bytes, size_t n, const struct image_limits *limits);
void codec_reader_fini(struct codec_reader *reader);
/* In a body: reads the header, keeping up to `profile` bytes of each marker that may hold a colour profile, and gives
 * up on what cannot be decoded. */
void codec_reader_open(struct codec_reader *reader, unsigned profile, struct image_info *info);

bool codec_is_profile(const struct jpeg_marker_struct *marker);

#endif
