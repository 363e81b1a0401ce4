/* One epoch as loaders read it: every file once and whole, in a random order or a given one, by several threads; where
 * there are several mounts, each of them its share. */
#ifndef CLI_LAB_EPOCH_H
#define CLI_LAB_EPOCH_H

#include <signal.h>
#include <stdint.h>

struct epoch {
    char *const *path; /* of the files, relative to a root */
    uint32_t files;
    const int *root; /* directories with the same files: place p of the order is read at root p % roots */
    int roots;
    int threads;
    const uint32_t *order; /* the files, each once; NULL: drawn by `seed` */
    uint64_t seed;
    uint64_t rate;                     /* bytes per second, as of storage that is slow; 0: as fast as it goes */
    const volatile sig_atomic_t *stop; /* non-zero: -ECANCELED */
    /* the result: */
    uint64_t bytes, elapsed; /* elapsed: nanoseconds */
    uint64_t sum;            /* of the files' hashes: the same whatever the order */
};

/* 0, or the first -errno. */
int epoch_read(struct epoch *epoch);
/* Drop the files' pages from the page cache. */
void epoch_forget(const struct epoch *epoch);

#endif
