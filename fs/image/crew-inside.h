/* What a crew and its processes say to each other over a socket. */
#ifndef FS_IMAGE_CREW_INSIDE_H
#define FS_IMAGE_CREW_INSIDE_H

#include "fs/image/image.h"

struct crew_question {
    struct image_shrinking wanted;
    uint64_t length;
}; /* and the file */

struct crew_answer {
    enum image_verdict verdict;
    struct image_reason reason;
    uint64_t length;
}; /* and the file */

int crew_send(int fd, const void *bytes, size_t n);
/* -EPIPE: the other end is gone; -ETIMEDOUT. `patience` in milliseconds; -1: waits without end. */
int crew_receive(int fd, void *bytes, size_t n, int patience);

#endif
