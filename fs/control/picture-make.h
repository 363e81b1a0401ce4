/* One image on its way from a file to an array. pictures.c provides the memory, and lets other requests wait. */
#ifndef FS_CONTROL_PICTURE_MAKE_H
#define FS_CONTROL_PICTURE_MAKE_H

#include "fs/control/budget.h"
#include "fs/image/crew.h"
#include "fs/image/frame.h"

struct control;
struct request_job;

/* Which image is wanted. */
struct picture_key {
    uint32_t file;
    uint32_t side; /* a longer shorter side is scaled down to this; 0: not scaled */
};

struct picture_making {
    /* set by the caller: */
    struct control *control;
    struct request_job *job;
    struct picture_key key;
    struct crew *crew;
    struct image_info info; /* of its header; all zero: not known yet */
    struct str *why;

    /* private: */
    uint64_t size; /* of the file */
    char *bytes;   /* its first `have` bytes */
    uint64_t have;
    struct charge charge; /* for memory in progress, except the frame */
    struct crew_decoding decoding;
    char npy[256]; /* the array's header */
    size_t npy_length;
};

/* Read the header, if it is not known. -EIO: not an image that can be shown, see `why`; the store's errors; -EINTR: the
 * job gave up; -ENOMEM; -EAGAIN: other requests have the memory. */
int making_begin(struct picture_making *m);
size_t making_length(const struct picture_making *m); /* of the array's file */
size_t making_room(const struct picture_making *m);   /* size of a frame for the array's file */
size_t making_slot(const struct picture_making *m);   /* size of the memory that is shared with the decoding process */
size_t making_expect(struct picture_making *m);       /* making_length, from `info` alone, before making_begin */
/* Charge requests' memory for the frame, of `room` bytes, and for decoding. -ENOMEM; -EAGAIN: it would fit, but other
 * requests have the memory. */
int making_charge(struct picture_making *m, size_t room, struct charge *frame);
/* Call it before taking memory that others may need: it waits for the first part of the file. */
int making_fetch(struct picture_making *m);
/* Write the array's file into the frame. `took`: nanoseconds without fetching. */
int making_decode(struct picture_making *m, const struct image_frame *frame, uint64_t *took);
void making_fini(struct picture_making *m);

#endif
