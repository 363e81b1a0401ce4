/* Pictures of the dataset as arrays in NumPy's format: decoded by who asks first, kept for the next who asks.
 *
 * The functions may wait for the store, and decode: for workers. A picture that is being made is waited for by all who
 * ask for it meanwhile. What is kept is bounded by the mount's `decoded=`, but for the picture made last, which readers
 * are still in the middle of; what is in hand, and what is kept, is charged to the requests' memory.
 *
 * The library that decodes runs in the server, within limits on pixels, scans and memory. Should it die all the same,
 * nobody sees it: the next server is given the requests that were not answered, and a request that three servers died
 * of gets EIO. So one bad picture costs its own readers, and neither the mount nor a process for each decode. */
#ifndef FS_CONTROL_PICTURES_H
#define FS_CONTROL_PICTURES_H

#include "fs/base/json.h"
#include "fs/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct control;
struct pictures;
struct request_job;

struct picture_key {
    uint32_t file;
    uint32_t side; /* the shorter side is made so long where it is longer; 0: as it is */
};

struct decoded_picture {
    struct picture_key key;
    char *bytes; /* of a .npy file */
    size_t length;
};

struct pictures *pictures_create(uint64_t most);
void pictures_destroy(struct pictures *pictures);

/* The length of its file, from the picture's header. -EIO: it is none that can be shown, and `why` tells; the store's
 * errors; -EINTR: the job gave up. */
int pictures_length(struct control *control, struct request_job *job, struct picture_key key, uint64_t *length,
                    struct str *why);
/* The same, and a reference to the picture itself. */
int pictures_get(struct control *control, struct request_job *job, struct picture_key key,
                 struct decoded_picture **picture, struct str *why);
/* The same where it is kept; else NULL. Does not wait. */
struct decoded_picture *pictures_kept(struct pictures *pictures, struct picture_key key);
void pictures_put(struct pictures *pictures, struct decoded_picture *picture);
bool pictures_drop(struct pictures *pictures); /* the least recently used that nobody reads; false: there is none */

/* What it takes to bring a sample to pixels here, as this node has seen it. */
struct picture_stats {
    uint64_t decoded, hits, failed;
    uint64_t nanoseconds; /* of decoding alone, without fetching */
    uint64_t kept;        /* bytes */
};
void pictures_stats(struct pictures *pictures, struct picture_stats *stats);

/* For tests of crashes: called before each decode. */
extern void (*pictures_fault)(const char *name);

#endif
