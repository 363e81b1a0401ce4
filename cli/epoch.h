/* One epoch as a loader reads it: every file once and whole, in a random order, by several threads. */
#ifndef CLI_EPOCH_H
#define CLI_EPOCH_H

#include <signal.h>
#include <stdint.h>

struct epoch {
    char *const *path; /* of the files, relative to `root` */
    uint32_t files;
    int root;
    int threads;
    uint64_t seed;
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
