/* Reads one epoch like loaders: several threads read every file once and whole, in a random or given order; with
 * several mounts, each its share. */
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
    const uint32_t *order; /* the files, each once; NULL: drawn from `seed` */
    uint64_t seed;
    uint64_t rate;                     /* bytes per second, to simulate slow storage; 0: unlimited */
    const volatile sig_atomic_t *stop; /* nonzero: -ECANCELED */
    /* results: */
    uint64_t bytes, elapsed; /* elapsed: nanoseconds */
    uint64_t sum;            /* of the files' hashes: independent of the order */
};

/* 0, or the first -errno. */
int epoch_read(struct epoch *epoch);
/* Drop the files' pages from the page cache. */
void epoch_forget(const struct epoch *epoch);

#endif
