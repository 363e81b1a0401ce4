/* How fast this node decodes images: the minimum work of a loader. */
#ifndef CLI_LAB_DECODE_H
#define CLI_LAB_DECODE_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>

bool decode_is_picture(const struct str *bytes); /* JPEG, by its first bytes */

/* Decodes the images repeatedly for some seconds, with one process per available processor: images per second. 0: none
 * can be decoded. The caller must have one thread. */
double decode_rate(const struct str *picture, uint32_t pictures, unsigned seconds);

#endif
