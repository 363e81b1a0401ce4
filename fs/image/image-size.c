/* Sizes of decoded images. Programs without libjpeg use this as well. */
#include "fs/image/codec-inside.h"

/* Other scales have no vector code in the library, and cost more than they save. */
static uint32_t scale_for(uint32_t shorter, uint32_t side)
{
    for (uint32_t scale = 1; side && scale < DECODED_EIGHTHS; scale *= 2)
        if (((uint64_t)shorter * scale + DECODED_EIGHTHS - 1) / DECODED_EIGHTHS >= side)
            return scale;
    return DECODED_EIGHTHS;
}

static uint32_t scaled(uint32_t length, uint32_t scale)
{
    return (length * scale + DECODED_EIGHTHS - 1) / DECODED_EIGHTHS;
}

uint32_t decoded_scale(const struct image_info *info, const struct image_wish *wish)
{
    return scale_for(info->width < info->height ? info->width : info->height, wish->side);
}

bool decoded_transposed(const struct image_info *info, const struct image_wish *wish)
{
    return wish->upright && info->orientation >= 5;
}

struct image_pixels image_decoded(const struct image_info *info, const struct image_wish *wish)
{
    uint32_t scale = decoded_scale(info, wish);
    struct image_pixels p = {.width = scaled(info->width, scale),
                             .height = scaled(info->height, scale),
                             .channels = wish->channels == 1 && info->components == 1 ? 1 : 3};
    if (decoded_transposed(info, wish)) {
        uint32_t width = p.width;
        p.width = p.height;
        p.height = width;
    }
    return p;
}

bool image_fit(uint32_t side, uint32_t *width, uint32_t *height)
{
    uint32_t *shorter = *width < *height ? width : height, *longer = *width < *height ? height : width;
    if (side == 0 || *shorter <= side)
        return false;
    *longer = (uint32_t)((uint64_t)*longer * side / *shorter);
    *shorter = side;
    return true;
}
