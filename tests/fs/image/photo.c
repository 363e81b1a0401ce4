/* See photo.h. */
#include "tests/fs/image/photo.h"

#include "tests/lib/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

static void draw_row(const struct photo *photo, unsigned channels, uint32_t y, uint8_t *row)
{
    for (uint32_t x = 0; x < photo->width; x++) {
        bool inside = (x / 24 + y / 24) % 3 == 0;
        for (unsigned c = 0; c < channels; c++)
            *row++ = (uint8_t)(inside ? 200 - 40 * c : (x * (c + 1) + y * 2) / 5 % 256);
    }
}

static void write_exif(struct jpeg_compress_struct *codec, const struct photo *photo)
{
    uint8_t motorola[32] = "Exif\0\0MM\0*\0\0\0\x8\0\x1\x1\x12\0\x3\0\0\0\x1";
    uint8_t intel[32] = "Exif\0\0II*\0\x8\0\0\0\x1\0\x12\x1\x3\0\x1\0\0";
    motorola[25] = intel[24] = (uint8_t)photo->orientation;
    jpeg_write_marker(codec, JPEG_APP0 + 1, photo->intel ? intel : motorola, sizeof motorola);
}

static void write_profile(struct jpeg_compress_struct *codec, const char *profile)
{
    size_t half = strlen(profile) / 2;
    for (int i = 0; i < 2; i++) {
        uint8_t marker[256] = "ICC_PROFILE";
        size_t n = i == 0 ? half : strlen(profile) - half;
        marker[12] = (uint8_t)(i + 1);
        marker[13] = 2;
        memcpy(marker + 14, profile + (i == 0 ? 0 : half), n);
        jpeg_write_marker(codec, JPEG_APP0 + 2, marker, (unsigned)(14 + n));
    }
}

static void set_up(struct jpeg_compress_struct *codec, const struct photo *photo, unsigned channels)
{
    codec->image_width = photo->width;
    codec->image_height = photo->height;
    codec->input_components = (int)channels;
    codec->in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_set_defaults(codec);
    jpeg_set_quality(codec, 90, TRUE);
    if (photo->plain_chroma)
        codec->comp_info[0].h_samp_factor = codec->comp_info[0].v_samp_factor = 1;
    static const jpeg_scan_info apart[] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    if (photo->apart) {
        codec->scan_info = apart;
        codec->num_scans = 3;
    }
    if (photo->progressive)
        jpeg_simple_progression(codec);
    codec->arith_code = photo->arithmetic;
}

void photo_make(const struct photo *photo, struct str *out)
{
    struct jpeg_compress_struct codec;
    struct jpeg_error_mgr errors;
    unsigned channels = photo->channels ? photo->channels : 3;
    uint8_t *row = malloc((size_t)photo->width * channels), *bytes = NULL;
    unsigned long length = 0;
    if (!row)
        bail_out("no memory");
    codec.err = jpeg_std_error(&errors);
    jpeg_create_compress(&codec);
    jpeg_mem_dest(&codec, &bytes, &length);
    set_up(&codec, photo, channels);
    jpeg_start_compress(&codec, TRUE);
    if (photo->orientation)
        write_exif(&codec, photo);
    if (photo->profile)
        write_profile(&codec, photo->profile);
    for (uint32_t y = 0; y < photo->height; y++) {
        JSAMPROW at = row;
        draw_row(photo, channels, y, row);
        jpeg_write_scanlines(&codec, &at, 1);
    }
    jpeg_finish_compress(&codec);
    jpeg_destroy_compress(&codec);
    str_add(out, bytes, length);
    free(bytes);
    free(row);
}

unsigned photo_markers(const struct str *photo, size_t *at, unsigned most)
{
    const uint8_t *bytes = (const uint8_t *)photo->data;
    unsigned count = 0;
    for (size_t i = 0; i + 1 < photo->length && count < most; i++)
        if (bytes[i] == 0xff && bytes[i + 1] >= 0xc0 && (bytes[i + 1] < 0xd0 || bytes[i + 1] > 0xd7) &&
            bytes[i + 1] != 0xff)
            at[count++] = i;
    return count;
}
