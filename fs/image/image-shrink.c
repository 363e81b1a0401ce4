/* Makes a smaller file from a file. */
#include "fs/base/cleanup.h"
#include "fs/image/image.h"

#include <stdio.h>
#include <stdlib.h>

static enum image_verdict no_memory(struct image_reason *reason)
{
    if (reason)
        snprintf(reason->text, sizeof reason->text, "not enough memory");
    return IMAGE_NO_MEMORY;
}

/* Decoding keeps at least twice the side, so that the filter determines the quality, not the decoder's scaling. */
enum image_verdict image_shrink(const void *bytes, size_t n, const struct image_shrinking *wanted, struct str *out,
                                struct image_reason *reason)
{
    const struct image_wish wish = {.limits = wanted->limits, .side = 2 * wanted->side, .channels = 1};
    struct image_info info;
    enum image_verdict verdict = image_probe(bytes, n, &wanted->limits, &info, reason);
    if (verdict != IMAGE_FINE)
        return verdict;
    struct image_pixels from = image_decoded(&info, &wish), to = from;
    to.width = info.width;
    to.height = info.height;
    if (!image_fit(wanted->side, &to.width, &to.height))
        return IMAGE_SMALL;
    CLEANUP_FREE uint8_t *large = from.data = malloc(image_pixels_size(&from));
    CLEANUP_FREE uint8_t *small = to.data = malloc(image_pixels_size(&to));
    if (!large || !small)
        return no_memory(reason);
    verdict = image_decode(bytes, n, &wish, &from, reason);
    if (verdict != IMAGE_FINE)
        return verdict;
    if (!image_resize(&from, &to))
        return no_memory(reason);
    const struct image_encoding encoding = {.quality = wanted->quality,
                                            .orientation = info.orientation,
                                            .original = info.profile ? bytes : NULL,
                                            .original_length = info.profile ? n : 0};
    return image_encode(&to, &encoding, out, reason);
}
