/* Encodes pixels as a JPEG file: baseline, 4:2:0, without metadata except orientation and colour profile. */
#include "fs/image/codec-inside.h"

#include <jerror.h>

enum { ROOM = 64 << 10 };

struct image_output {
    struct jpeg_destination_mgr manager; /* first: libjpeg knows only this */
    struct str *out;
    size_t most;
};

struct image_writing {
    struct jpeg_compress_struct codec;
    struct codec_guard guard;
    struct image_output output;
    struct codec_reader original; /* for its colour profile */
    const struct image_pixels *pixels;
    const struct image_encoding *encoding;
};

static struct image_output *output_of(j_compress_ptr codec)
{
    return (struct image_output *)(void *)codec->dest;
}

static void output_room(j_compress_ptr codec)
{
    struct image_output *o = output_of(codec);
    char *room = str_reserve(o->out, ROOM);
    if (!room)
        ERREXIT1(codec, JERR_OUT_OF_MEMORY, 0);
    o->manager.next_output_byte = (JOCTET *)room;
    o->manager.free_in_buffer = ROOM;
}

static void output_take(j_compress_ptr codec, size_t n)
{
    struct image_output *o = output_of(codec);
    o->out->length += n;
    if (o->out->length > o->most)
        codec_give_up((struct codec_guard *)(void *)codec->err, IMAGE_LIMIT, "the file grows beyond the limit");
}

static boolean output_full(j_compress_ptr codec)
{
    output_take(codec, ROOM);
    output_room(codec);
    return TRUE;
}

static void output_end(j_compress_ptr codec)
{
    output_take(codec, ROOM - output_of(codec)->manager.free_in_buffer);
}

/* A TIFF header and a table with one entry. */
static void write_orientation(j_compress_ptr codec, unsigned orientation)
{
    uint8_t exif[32] = "Exif\0\0MM\0*\0\0\0\x8\0\x1\x1\x12\0\x3\0\0\0\x1";
    exif[25] = (uint8_t)orientation;
    jpeg_write_marker(codec, JPEG_APP0 + 1, exif, sizeof exif);
}

static void read_profile(void *user)
{
    struct image_info info;
    codec_reader_open(user, 0xffff, &info);
}

/* Copies the original's markers in order. */
static void write_profile(struct image_writing *w)
{
    if (codec_guarded(&w->original.guard, read_profile, &w->original) != IMAGE_FINE)
        codec_give_up(&w->guard, w->original.guard.verdict, w->original.guard.reason.text);
    for (const struct jpeg_marker_struct *m = w->original.codec.marker_list; m; m = m->next)
        if (codec_is_profile(m))
            jpeg_write_marker(&w->codec, JPEG_APP0 + 2, m->data, m->data_length);
}

static void write_start(struct image_writing *w)
{
    struct jpeg_compress_struct *codec = &w->codec;
    codec->dest = &w->output.manager;
    codec->image_width = w->pixels->width;
    codec->image_height = w->pixels->height;
    codec->input_components = (int)w->pixels->channels;
    codec->in_color_space = w->pixels->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(codec);
    jpeg_set_quality(codec, (int)w->encoding->quality, TRUE);
    codec->optimize_coding = w->encoding->optimise;
    jpeg_start_compress(codec, TRUE);
    if (w->encoding->orientation > 1)
        write_orientation(codec, w->encoding->orientation);
    if (w->encoding->original)
        write_profile(w);
}

static void encode_body(void *user)
{
    struct image_writing *w = user;
    struct jpeg_compress_struct *codec = &w->codec;
    size_t row = (size_t)w->pixels->width * w->pixels->channels;
    jpeg_create_compress(codec);
    write_start(w);
    while (codec->next_scanline < codec->image_height) {
        JSAMPROW at = w->pixels->data + row * codec->next_scanline;
        jpeg_write_scanlines(codec, &at, 1);
    }
    jpeg_finish_compress(codec);
}

enum image_verdict image_encode(const struct image_pixels *pixels, const struct image_encoding *encoding,
                                struct str *out, struct image_reason *reason)
{
    size_t before = out->length;
    struct image_writing w = {
        .output = {.manager = {.init_destination = output_room,
                               .empty_output_buffer = output_full,
                               .term_destination = output_end},
                   .out = out,
                   .most = encoding->most ? before + encoding->most : SIZE_MAX},
        .pixels = pixels,
        .encoding = encoding,
    };
    codec_guard_init(&w.guard);
    w.codec.err = &w.guard.manager;
    codec_reader_init(&w.original, encoding->original, encoding->original_length, NULL);
    enum image_verdict verdict = codec_guarded(&w.guard, encode_body, &w);
    jpeg_destroy_compress(&w.codec);
    codec_reader_fini(&w.original);
    if (verdict != IMAGE_FINE)
        out->length = before;
    codec_tell(&w.guard, reason);
    return verdict;
}

#define TEXT_OF(word) TEXT_OF_(word)
#define TEXT_OF_(word) #word

const char *image_library(void)
{
#ifdef LIBJPEG_TURBO_VERSION
    return "libjpeg-turbo " TEXT_OF(LIBJPEG_TURBO_VERSION) ", filter 1";
#else
    return "libjpeg " TEXT_OF(JPEG_LIB_VERSION) ", filter 1";
#endif
}
