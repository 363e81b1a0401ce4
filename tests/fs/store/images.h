/* The files of a shard as they were, to be put back before each damage. Every function ends the program when the test
 * cannot go on. */
#ifndef TESTS_FS_STORE_IMAGES_H
#define TESTS_FS_STORE_IMAGES_H

#include "fs/base/str.h"

enum { MOST_IMAGES = 64 };

struct image {
    char path[512];
    struct str bytes;
};
extern struct image image[MOST_IMAGES];
extern int images;

void images_take(const char *folder); /* its files, besides those that have been taken */
void images_put_back(const char *directory);
void images_end(void);
void write_file(const char *path, const void *bytes, size_t n);
void flip_file(const char *path, size_t at, char mask);

#endif
