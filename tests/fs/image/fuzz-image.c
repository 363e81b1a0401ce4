/* Fuzz target: all of fs/image on one file. The bytes are a file as it is, or else changes to a good one: a number that
 * chooses it and what is wished, and then a place and a value each. What the header says is held against what decoding
 * gives; pixels are made smaller and encoded, and that file must be fine. */
#include "fs/image/image.h"
#include "tests/fs/image/photo.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { PHOTOS = 6, SIDE = 16 };

static const struct photo photos[PHOTOS] = {
    {.width = 61, .height = 47, .orientation = 6, .profile = "red"},
    {.width = 200, .height = 150, .progressive = true, .orientation = 3, .intel = true},
    {.width = 64, .height = 48, .arithmetic = true},
    {.width = 99, .height = 33, .channels = 1, .progressive = true},
    {.width = 40, .height = 40, .channels = 4},
    {.width = 1, .height = 300, .plain_chroma = true},
};

static const struct image_limits limits = {.pixels = 1 << 20, .memory = 32 << 20, .scans = 30};

static void check_reason(enum image_verdict verdict, const struct image_reason *reason)
{
    if ((verdict == IMAGE_FINE) != (reason->text[0] == '\0') || (unsigned)verdict >= IMAGE_VERDICTS)
        abort();
}

static void encode_again(const struct image_pixels *pixels, const struct str *file, const struct image_info *info)
{
    const struct image_encoding encoding = {.quality = 90,
                                            .orientation = info->orientation,
                                            .optimise = info->height % 2,
                                            .original = file->data,
                                            .original_length = file->length};
    const struct image_wish wish = {.channels = pixels->channels};
    struct str out = STR_INIT;
    struct image_reason reason;
    struct image_info again;
    enum image_verdict verdict = image_encode(pixels, &encoding, &out, &reason);
    check_reason(verdict, &reason);
    if (verdict == IMAGE_FINE) {
        if (image_probe(out.data, out.length, NULL, &again, NULL) != IMAGE_FINE || again.width != pixels->width ||
            again.height != pixels->height || again.orientation != info->orientation || again.profile != info->profile)
            abort();
        struct image_pixels back = image_decoded(&again, &wish);
        back.data = malloc(image_pixels_size(&back));
        if (image_decode(out.data, out.length, &wish, &back, NULL) != IMAGE_FINE)
            abort();
        free(back.data);
    }
    str_fini(&out);
}

static void shrink(const struct image_pixels *pixels, const struct str *file, const struct image_info *info)
{
    struct image_pixels small = *pixels;
    if (!image_fit(SIDE, &small.width, &small.height))
        return;
    small.data = malloc(image_pixels_size(&small));
    if (!image_resize(pixels, &small))
        abort();
    encode_again(&small, file, info);
    free(small.data);
}

static void try_file(const struct str *file, uint8_t wished)
{
    const struct image_wish wish = {.limits = limits,
                                    .side = wished & 1 ? 2 * SIDE : 0,
                                    .channels = wished & 2 ? 1 : 3,
                                    .upright = wished & 4,
                                    .lenient = wished & 8};
    struct image_reason reason;
    struct image_info info;
    enum image_verdict verdict = image_probe(file->data, file->length, &limits, &info, &reason);
    check_reason(verdict, &reason);
    if (verdict != IMAGE_FINE)
        return;
    struct image_pixels pixels = image_decoded(&info, &wish);
    if ((uint64_t)pixels.width * pixels.height > limits.pixels || pixels.width == 0 || pixels.height == 0)
        abort();
    pixels.data = malloc(image_pixels_size(&pixels));
    verdict = image_decode(file->data, file->length, &wish, &pixels, &reason);
    check_reason(verdict, &reason);
    if (verdict == IMAGE_FINE)
        shrink(&pixels, file, &info);
    free(pixels.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct str good[PHOTOS];
    struct str file = STR_INIT;
    uint8_t wished = n > 1 ? data[1] : 0;
    for (int i = 0; good[PHOTOS - 1].length == 0 && i < PHOTOS; i++)
        photo_make(&photos[i], &good[i]);
    if (n < 2 || data[0] == 0xff) {
        str_add(&file, data, n);
        try_file(&file, (uint8_t)n);
    } else {
        str_add(&file, good[data[0] % PHOTOS].data, good[data[0] % PHOTOS].length);
        for (size_t i = 2; i + 2 < n; i += 3)
            file.data[(data[i] << 8 | data[i + 1]) % file.length] = (char)data[i + 2];
        try_file(&file, wished);
    }
    str_fini(&file);
    return 0;
}
