/* Which image is wanted, and the bytes that it is made of. */
#ifndef FS_CONTROL_PICTURE_FETCH_H
#define FS_CONTROL_PICTURE_FETCH_H

#include "fs/store/store.h"

#include <stdint.h>

struct request_job;

struct picture_key {
    uint32_t file;
    uint32_t side; /* a longer shorter side is scaled down to this; 0: not scaled */
};

/* The bytes of a file from `from` to `to`. Waits; -EINTR: the job gave up; or the store's errors. */
int picture_fetch(struct store *store, struct request_job *job, uint32_t file, uint64_t from, uint64_t to, char *bytes);

#endif
