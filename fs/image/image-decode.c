/* Decodes a JPEG file to pixels, and rotates them if requested. */
#include "fs/image/codec-inside.h"

#include <stdlib.h>
#include <string.h>

struct decode_turn { /* where pixel (x, y) of the file goes, in pixels */
    ptrdiff_t origin, step_x, step_y;
};

struct image_decoding {
    struct codec_reader reader;
    const struct image_wish *wish;
    struct image_pixels *pixels;
    uint8_t *row; /* for rotated images: one row of the file */
};

/* `w` and `h` are those of the result. Orientations 5 to 8 are 1 to 4 of the transposed image, where 6 and 8 are
 * quarter turns. */
static struct decode_turn turn_of(unsigned orientation, ptrdiff_t w, ptrdiff_t h)
{
    const ptrdiff_t last = w * h - 1;
    const struct decode_turn turns[] = {
        {0, 1, w},             /* 1: as it is */
        {w - 1, -1, w},        /* 2: mirrored, left to right */
        {last, -1, -w},        /* 3: upside down */
        {last - w + 1, 1, -w}, /* 4: mirrored, top to bottom */
        {0, w, 1},             /* 5: transposed */
        {w - 1, w, -1},        /* 6: to be turned to the right */
        {last, -w, -1},        /* 7: transposed the other way */
        {last - w + 1, -w, 1}, /* 8: to be turned to the left */
    };
    return turns[orientation - 1];
}

static void place_row(const struct decode_turn *turn, ptrdiff_t y, const uint8_t *row, uint32_t count,
                      const struct image_pixels *to)
{
    ptrdiff_t step = turn->step_x * to->channels;
    uint8_t *at = to->data + (turn->origin + turn->step_y * y) * to->channels;
    for (uint32_t x = 0; x < count; x++, row += to->channels, at += step)
        for (unsigned i = 0; i < to->channels; i++)
            at[i] = row[i];
}

static void read_rows(struct image_decoding *d)
{
    struct jpeg_decompress_struct *codec = &d->reader.codec;
    size_t row = (size_t)codec->output_width * d->pixels->channels;
    while (codec->output_scanline < codec->output_height) {
        JSAMPROW at = d->pixels->data + row * codec->output_scanline;
        jpeg_read_scanlines(codec, &at, 1);
    }
}

static void read_and_turn(struct image_decoding *d, unsigned orientation)
{
    struct jpeg_decompress_struct *codec = &d->reader.codec;
    struct decode_turn turn = turn_of(orientation, d->pixels->width, d->pixels->height);
    d->row = malloc((size_t)codec->output_width * d->pixels->channels);
    if (!d->row)
        codec_give_up(&d->reader.guard, IMAGE_NO_MEMORY, "not enough memory");
    while (codec->output_scanline < codec->output_height) {
        uint32_t y = codec->output_scanline;
        JSAMPROW at = d->row;
        jpeg_read_scanlines(codec, &at, 1);
        place_row(&turn, y, d->row, codec->output_width, d->pixels);
    }
}

static void decode_body(void *user)
{
    struct image_decoding *d = user;
    struct jpeg_decompress_struct *codec = &d->reader.codec;
    struct image_info info = {0};
    codec_reader_open(&d->reader, 0, &info);
    struct image_pixels expected = image_decoded(&info, d->wish);
    codec->scale_num = decoded_scale(&info, d->wish);
    codec->scale_denom = DECODED_EIGHTHS;
    codec->out_color_space = expected.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_calc_output_dimensions(codec);
    bool transposed = decoded_transposed(&info, d->wish);
    uint32_t width = transposed ? d->pixels->height : d->pixels->width;
    uint32_t height = transposed ? d->pixels->width : d->pixels->height;
    if (codec->output_width != width || codec->output_height != height || d->pixels->channels != expected.channels)
        codec_give_up(&d->reader.guard, IMAGE_CORRUPT, "has another size than its header showed before");
    jpeg_start_decompress(codec);
    if (d->wish->upright && info.orientation != 1)
        read_and_turn(d, info.orientation);
    else
        read_rows(d);
    jpeg_finish_decompress(codec);
}

enum image_verdict image_decode(const void *bytes, size_t n, const struct image_wish *wish, struct image_pixels *pixels,
                                struct image_reason *reason)
{
    struct image_decoding d = {.wish = wish, .pixels = pixels};
    codec_reader_init(&d.reader, bytes, n, &wish->limits);
    d.reader.guard.lenient = wish->lenient;
    enum image_verdict verdict = codec_guarded(&d.reader.guard, decode_body, &d);
    codec_reader_fini(&d.reader);
    free(d.row);
    codec_tell(&d.reader.guard, reason);
    return verdict;
}
