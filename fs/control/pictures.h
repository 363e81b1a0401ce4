/* Pictures of the dataset as arrays in NumPy's format: decoded by who asks first, kept for the next who asks.
 *
 * The functions may wait for the store, for a process that decodes, and for room: for workers. A picture that is being
 * made is waited for by all who ask for it meanwhile. What is made and kept is bounded by the mount's `decoded=`, but
 * for one picture that is larger; it is charged to the requests' memory.
 *
 * The library that decodes runs in processes of a crew, within limits on pixels, scans and memory. One that dies of a
 * picture, or does not come back, costs those who read that picture EIO. */
#ifndef FS_CONTROL_PICTURES_H
#define FS_CONTROL_PICTURES_H

#include "fs/control/kept.h"
#include "fs/control/picture-fetch.h"

#include "fs/base/json.h"
#include "fs/base/str.h"

#include <sys/types.h>

struct control;
struct pictures;
struct request_job;

struct decoded_picture {
    struct kept_item item; /* first */
    struct picture_key key;
    char *bytes; /* of a .npy file */
    size_t length;
};

int pictures_create(uint64_t most, const char *program, struct pictures **pictures); /* `program`: see crew.h */
void pictures_destroy(struct pictures *pictures);                                    /* no worker is in it any more */
void pictures_rest(struct pictures *pictures); /* there is nothing to decode: ends the processes, until there is */

/* The length of its file, from the picture's header. -EIO: it is none that can be shown, and `why` tells; the store's
 * errors; -EINTR: the job gave up. */
int pictures_length(struct control *control, struct request_job *job, struct picture_key key, uint64_t *length,
                    struct str *why);
/* The same, and a reference to the picture itself. */
int pictures_get(struct control *control, struct request_job *job, struct picture_key key,
                 struct decoded_picture **picture, struct str *why);
/* The same where it is kept, or the header was looked at before. These do not wait. */
struct decoded_picture *pictures_kept(struct pictures *pictures, struct picture_key key);
bool pictures_known(struct pictures *pictures, struct picture_key key, uint64_t *length);
/* `read`: this many bytes of it went to this thread, by the kernel's number. */
void pictures_put(struct pictures *pictures, struct decoded_picture *picture, size_t read, pid_t reader);
bool pictures_drop(struct pictures *pictures); /* the least recently used that nobody reads; false: there is none */

/* What it takes to bring a sample to pixels here, as this node has seen it. */
struct picture_stats {
    uint64_t decoded, hits, failed;
    uint64_t nanoseconds; /* of decoding alone, without fetching */
    uint64_t kept;        /* bytes, with what is being made */
};
void pictures_stats(struct pictures *pictures, struct picture_stats *stats);

#endif
