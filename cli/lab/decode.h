/* How fast this node decodes images: what a loader does to them at least. */
#ifndef CLI_LAB_DECODE_H
#define CLI_LAB_DECODE_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stdint.h>

bool decode_is_picture(const struct str *bytes); /* by its first bytes: JPEG */

/* Decodes the images repeatedly for some seconds, a process on each processor that we may use: images per
 * second. 0 where none can be decoded. The caller has one thread. */
double decode_rate(const struct str *picture, uint32_t pictures, unsigned seconds);

#endif
