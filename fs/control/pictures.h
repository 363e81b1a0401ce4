/* Images of the dataset as arrays in NumPy's format: decoded for the first request, cached for later ones.
 *
 * The functions may wait for the store, for a decoding process, and for room: call them from workers. All requests for
 * an image wait for the first one. The memory is bounded by the mount's `decoded=`, except that one image may be
 * larger; it is charged to the requests' memory. Each image has a descriptor and a mapping, so their number is also
 * bounded.
 *
 * libjpeg runs in processes of a crew, with limits on pixels, scans and memory. If a process dies of an image, or
 * hangs, only readers of this image get EIO. */
#ifndef FS_CONTROL_PICTURES_H
#define FS_CONTROL_PICTURES_H

#include "fs/control/kept.h"
#include "fs/control/picture-make.h"

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
void pictures_destroy(struct pictures *pictures);                                    /* only when no worker uses it */
void pictures_rest(struct pictures *pictures); /* nothing to decode: ends the processes until there is */

/* Length of the array's file, from the image's header. -EIO: not an image that can be shown, see `why`; the store's
 * errors; -EINTR: the job gave up. */
int pictures_length(struct control *control, struct request_job *job, struct picture_key key, uint64_t *length,
                    struct str *why);
/* The same, and a reference to the image itself. */
int pictures_get(struct control *control, struct request_job *job, struct picture_key key,
                 struct decoded_picture **picture, struct str *why);
/* The same if the image, or its header, is cached. These never wait. */
struct decoded_picture *pictures_kept(struct pictures *pictures, struct picture_key key);
bool pictures_known(struct pictures *pictures, struct picture_key key, uint64_t *length);
/* `read`: how many of its bytes this thread (the kernel's number) has read. */
void pictures_put(struct pictures *pictures, struct decoded_picture *picture, size_t read, pid_t reader);
/* removes the least recently used image without readers; false: there is none */
bool pictures_drop(struct pictures *pictures);

/* Mean times to fetch and decode a sample, as measured by this node. */
struct picture_stats {
    uint64_t decoded, hits, failed;
    uint64_t nanoseconds; /* of decoding, without fetching */
    uint64_t kept;        /* bytes, including images in progress */
};
/* kept_crowded: images were removed before they were read to their end. `places`: the most images. */
bool pictures_crowded(struct pictures *pictures, unsigned *places);
void pictures_stats(struct pictures *pictures, struct picture_stats *stats);

#endif
