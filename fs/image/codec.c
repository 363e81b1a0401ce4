/* Implements codec-inside.h. */
#include "fs/image/codec-inside.h"

#include <string.h>

#include <jerror.h>

/* The usual ten scans are within the limit for any number of pixels; decoding takes a few seconds at most. */
const struct image_limits image_limits_usual = {
    .pixels = IMAGE_PIXELS_MOST, .memory = 1 << 30, .scans = 100, .work = UINT64_C(3) << 30};

static const char *const verdict_names[IMAGE_VERDICTS] = {
    [IMAGE_FINE] = "fine",
    [IMAGE_NOT_JPEG] = "not-jpeg",
    [IMAGE_EMPTY] = "empty",
    [IMAGE_TRUNCATED] = "truncated",
    [IMAGE_CORRUPT] = "corrupt",
    [IMAGE_COLOURS] = "colours",
    [IMAGE_UNSUPPORTED] = "unsupported",
    [IMAGE_LIMIT] = "limit",
    [IMAGE_NO_MEMORY] = "no-memory",
    [IMAGE_SMALL] = "small",
    [IMAGE_CRASHED] = "crashed",
};

const char *image_verdict_name(enum image_verdict verdict)
{
    return (unsigned)verdict < IMAGE_VERDICTS ? verdict_names[verdict] : "unknown";
}

/* By libjpeg's message number. */
static enum image_verdict verdict_of(int message)
{
    switch (message) {
    case JERR_NO_SOI:
        return IMAGE_NOT_JPEG;
    case JERR_EMPTY_IMAGE:
        return IMAGE_EMPTY;
    case JERR_INPUT_EMPTY:
    case JERR_INPUT_EOF:
    case JWRN_JPEG_EOF:
    case JERR_NO_IMAGE:
    case JERR_SOF_NO_SOS:
        return IMAGE_TRUNCATED;
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
        return IMAGE_UNSUPPORTED;
    case JERR_IMAGE_TOO_BIG:
    case JERR_WIDTH_OVERFLOW:
    case JERR_NO_BACKING_STORE:
        return IMAGE_LIMIT;
    case JERR_OUT_OF_MEMORY:
        return IMAGE_NO_MEMORY;
    default:
        return IMAGE_CORRUPT;
    }
}

static _Noreturn void guard_error(j_common_ptr codec)
{
    struct codec_guard *guard = (struct codec_guard *)(void *)codec->err;
    char text[JMSG_LENGTH_MAX];
    guard->manager.format_message(codec, text);
    codec_give_up(guard, verdict_of(guard->manager.msg_code), text);
}

/* Warnings: libjpeg continues with invented pixels. Some concern nothing that affects pixels. */
static void guard_message(j_common_ptr codec, int level)
{
    struct codec_guard *guard = (struct codec_guard *)(void *)codec->err;
    if (level >= 0)
        return;
    switch (guard->manager.msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
        return;
    case JWRN_JPEG_EOF:
        break;
    default:
        if (guard->lenient)
            return;
    }
    guard_error(codec);
}

static void guard_silence(j_common_ptr codec)
{
    (void)codec;
}

static void guard_progress(j_common_ptr codec)
{
    struct codec_guard *guard = (struct codec_guard *)(void *)codec->err;
    if (codec->is_decompressor && (unsigned)((j_decompress_ptr)(void *)codec)->input_scan_number > guard->scans)
        codec_give_up(guard, IMAGE_LIMIT, "more scans than the limit");
}

void codec_guard_init(struct codec_guard *guard)
{
    *guard = (struct codec_guard){.scans = image_limits_usual.scans};
    jpeg_std_error(&guard->manager);
    guard->manager.error_exit = guard_error;
    guard->manager.emit_message = guard_message;
    guard->manager.output_message = guard_silence;
    guard->progress.progress_monitor = guard_progress;
}

enum image_verdict codec_guarded(struct codec_guard *guard, void (*body)(void *), void *user)
{
    if (setjmp(guard->back) == 0)
        body(user);
    return guard->verdict;
}

void codec_give_up(struct codec_guard *guard, enum image_verdict verdict, const char *reason)
{
    guard->verdict = verdict;
    snprintf(guard->reason.text, sizeof guard->reason.text, "%s", reason);
    longjmp(guard->back, 1);
}

void codec_tell(const struct codec_guard *guard, struct image_reason *reason)
{
    if (reason)
        *reason = guard->reason;
}

void codec_reader_init(struct codec_reader *reader, const void *bytes, size_t n, const struct image_limits *limits)
{
    memset(&reader->codec, 0, sizeof reader->codec);
    codec_guard_init(&reader->guard);
    reader->codec.err = &reader->guard.manager;
    reader->bytes = bytes;
    reader->length = n;
    reader->limits = limits && limits->pixels ? *limits : image_limits_usual;
    reader->guard.scans = reader->limits.scans;
}

void codec_reader_fini(struct codec_reader *reader)
{
    jpeg_destroy_decompress(&reader->codec);
}
