/* One picture on the way from its file to an array. Where it lies then, and who else waits, is for pictures.c. */
#ifndef FS_CONTROL_PICTURE_MAKE_H
#define FS_CONTROL_PICTURE_MAKE_H

#include "fs/control/budget.h"
#include "fs/control/picture-fetch.h"
#include "fs/image/crew.h"
#include "fs/image/frame.h"

struct picture_making {
    /* The caller's: */
    struct control *control;
    struct request_job *job;
    struct picture_key key;
    struct crew *crew;
    struct image_info info; /* of its header; all zero: not known yet */
    struct str *why;

    /* Not the caller's: */
    uint64_t size; /* of the file */
    char *bytes;   /* its first ones, `have` of them */
    uint64_t have;
    struct charge charge; /* what is in progress, except for the frame */
    struct crew_decoding decoding;
    char npy[256]; /* the array's header */
    size_t npy_length;
};

/* Looks at its header, where that is not known. -EIO: it is none that can be shown, and `why` tells; the store's
 * errors; -EINTR: the job gave up; -ENOMEM; -EAGAIN: others have the memory. */
int making_begin(struct picture_making *m);
size_t making_length(const struct picture_making *m); /* of the array's file */
size_t making_room(const struct picture_making *m);   /* of a frame, for the array's file */
size_t making_slot(const struct picture_making *m);   /* of the memory that the process that decodes and we both have */
size_t making_expect(struct picture_making *m);       /* making_length, of one that is not begun but has `info` */
/* Charges the requests' memory for the frame, which has so much, and for what else decoding takes. -ENOMEM; -EAGAIN: it
 * is not too much, but others have it. */
int making_charge(struct picture_making *m, size_t room, struct charge *frame);
/* To be called before memory is taken that others may want: the first part of the file is waited for. */
int making_fetch(struct picture_making *m);
/* The array's file, at the beginning of the frame. `took`, nanoseconds, is without fetching. */
int making_decode(struct picture_making *m, const struct image_frame *frame, uint64_t *took);
void making_fini(struct picture_making *m);

#endif
