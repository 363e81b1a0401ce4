/* Synthetic JPEG images for the demonstration: the same number gives the same image. */
#ifndef CLI_LAB_PICTURE_H
#define CLI_LAB_PICTURE_H

#include <stdint.h>

/* Writes a new file of about 112 KiB in a directory. Images of one class contain the same shape. 0 or -errno; then
 * there is no file. */
int picture_write(int directory, const char *name, uint64_t number, unsigned class);

#endif
