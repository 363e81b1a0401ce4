/* Shrinks photographs for `make bench`, and for the comparison with Pillow:
 *
 *     shrinker resize SIDE SECONDS FILE…    as fs/image does it: photographs a second of this process's own time
 *     shrinker plain SIDE SECONDS FILE…     a plain loop over libjpeg, with the same scale, filter and quality
 *     shrinker decode 0 SECONDS FILE…       only decodes, all pixels
 *     shrinker library 0 SECONDS FILE…      the same by libjpeg alone
 *     shrinker pixels SIDE 0 FILE OUT       one photograph's pixels as a PNM file; SIDE 0: as they are decoded */
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/image/image.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

enum { QUALITY = 90, FILE_MOST = 256 << 20 };

static _Noreturn void die(const char *what, const char *why)
{
    fprintf(stderr, "shrinker: %s: %s\n", what, why);
    exit(1);
}

static struct image_pixels with_memory(struct image_pixels p)
{
    p.data = malloc(image_pixels_size(&p));
    if (!p.data)
        die("malloc", "no memory");
    return p;
}

/* --- by fs/image --- */

static struct image_pixels decode(const struct str *file, uint32_t side, struct image_info *info)
{
    const struct image_wish wish = {.channels = 3, .side = 2 * side};
    struct image_reason reason;
    if (image_probe(file->data, file->length, NULL, info, &reason) != IMAGE_FINE)
        die("probe", reason.text);
    struct image_pixels pixels = with_memory(image_decoded(info, &wish));
    if (image_decode(file->data, file->length, &wish, &pixels, &reason) != IMAGE_FINE)
        die("decode", reason.text);
    return pixels;
}

/* Takes the pixels. */
static struct image_pixels resize(struct image_pixels from, uint32_t side, uint32_t width, uint32_t height)
{
    struct image_pixels to = {.width = width, .height = height, .channels = from.channels};
    if (!image_fit(side, &to.width, &to.height))
        return from;
    to = with_memory(to);
    if (!image_resize(&from, &to))
        die("resize", "cannot");
    free(from.data);
    return to;
}

static void do_resize(const struct str *file, uint32_t side)
{
    struct image_encoding encoding = {.quality = QUALITY, .original = file->data, .original_length = file->length};
    struct image_info info;
    CLEANUP_STR struct str out = STR_INIT;
    struct image_pixels from = decode(file, side, &info);
    struct image_pixels to = resize(from, side, info.width, info.height);
    encoding.orientation = info.orientation;
    if (image_encode(&to, &encoding, &out, NULL) != IMAGE_FINE)
        die("encode", "cannot");
    free(to.data);
}

static void do_decode(const struct str *file, uint32_t side)
{
    struct image_info info;
    free(decode(file, side, &info).data);
}

/* --- by libjpeg, as anybody would --- */

static struct image_pixels plain_decode(const struct str *file, uint32_t side, uint32_t *width, uint32_t *height)
{
    struct jpeg_decompress_struct codec;
    struct jpeg_error_mgr errors;
    codec.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&codec);
    jpeg_mem_src(&codec, (const unsigned char *)file->data, file->length);
    jpeg_read_header(&codec, TRUE);
    *width = codec.image_width;
    *height = codec.image_height;
    uint32_t shorter = *width < *height ? *width : *height;
    codec.scale_denom = 8;
    codec.scale_num = 1;
    while (codec.scale_num < 8 && (side == 0 || (shorter * codec.scale_num + 7) / 8 < 2 * side))
        codec.scale_num *= 2;
    codec.out_color_space = JCS_RGB;
    jpeg_start_decompress(&codec);
    struct image_pixels p = with_memory((struct image_pixels){NULL, codec.output_width, codec.output_height, 3});
    while (codec.output_scanline < codec.output_height) {
        JSAMPROW row = p.data + (size_t)codec.output_scanline * p.width * 3;
        jpeg_read_scanlines(&codec, &row, 1);
    }
    jpeg_finish_decompress(&codec);
    jpeg_destroy_decompress(&codec);
    return p;
}

static void plain_encode(const struct image_pixels *p)
{
    struct jpeg_compress_struct codec;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long length = 0;
    codec.err = jpeg_std_error(&errors);
    jpeg_create_compress(&codec);
    jpeg_mem_dest(&codec, &bytes, &length);
    codec.image_width = p->width;
    codec.image_height = p->height;
    codec.input_components = 3;
    codec.in_color_space = JCS_RGB;
    jpeg_set_defaults(&codec);
    jpeg_set_quality(&codec, QUALITY, TRUE);
    jpeg_start_compress(&codec, TRUE);
    while (codec.next_scanline < codec.image_height) {
        JSAMPROW row = p->data + (size_t)codec.next_scanline * p->width * 3;
        jpeg_write_scanlines(&codec, &row, 1);
    }
    jpeg_finish_compress(&codec);
    jpeg_destroy_compress(&codec);
    free(bytes);
}

static void do_plain(const struct str *file, uint32_t side)
{
    uint32_t width, height;
    struct image_pixels from = plain_decode(file, side, &width, &height);
    struct image_pixels to = resize(from, side, width, height);
    plain_encode(&to);
    free(to.data);
}

static void do_library(const struct str *file, uint32_t side)
{
    uint32_t width, height;
    free(plain_decode(file, side, &width, &height).data);
}

/* --- main --- */

static void read_photograph(const char *path, struct str *file)
{
    int error = file_read(AT_FDCWD, path, FILE_MOST, file);
    if (error)
        die(path, strerror(-error));
}

static void measure(void (*work)(const struct str *, uint32_t), uint32_t side, double seconds, char **paths, int count)
{
    struct str *file = calloc((size_t)count, sizeof *file);
    uint64_t done = 0;
    clock_t began = 0;
    for (int i = 0; file && i < count; i++)
        read_photograph(paths[i], &file[i]);
    for (int warm = 1; warm >= 0; warm--) {
        began = clock();
        for (done = 0; (double)(clock() - began) < (warm ? 0.1 : seconds) * CLOCKS_PER_SEC; done++)
            work(&file[done % (uint64_t)count], side);
    }
    printf("%.1f\n", (double)done * CLOCKS_PER_SEC / (double)(clock() - began));
    for (int i = 0; i < count; i++)
        str_fini(&file[i]);
    free(file);
}

static void write_pixels(const char *path, uint32_t side, const char *to)
{
    CLEANUP_STR struct str file = STR_INIT;
    CLEANUP_FCLOSE FILE *out = fopen(to, "w");
    struct image_info info;
    read_photograph(path, &file);
    struct image_pixels p = decode(&file, side, &info);
    if (side)
        p = resize(p, side, info.width, info.height);
    if (!out || fprintf(out, "P6\n%u %u\n255\n", p.width, p.height) < 0 ||
        fwrite(p.data, 1, image_pixels_size(&p), out) != image_pixels_size(&p))
        die(to, strerror(errno));
    free(p.data);
}

int main(int argc, char **argv)
{
    static const struct work {
        const char *name;
        void (*work)(const struct str *, uint32_t);
    } works[] = {{"resize", do_resize}, {"plain", do_plain}, {"decode", do_decode}, {"library", do_library}};
    if (argc < 5)
        die("usage", "shrinker WHAT SIDE SECONDS FILE…");
    uint32_t side = (uint32_t)strtoul(argv[2], NULL, 10);
    if (strcmp(argv[1], "pixels") == 0 && argc == 6)
        write_pixels(argv[4], side, argv[5]);
    for (size_t i = 0; i < sizeof works / sizeof *works; i++)
        if (strcmp(argv[1], works[i].name) == 0)
            measure(works[i].work, side, strtod(argv[3], NULL), argv + 4, argc - 4);
    return 0;
}
