/* What a crew and its processes say to each other over a socket. */
#ifndef FS_IMAGE_CREW_INSIDE_H
#define FS_IMAGE_CREW_INSIDE_H

#include "fs/image/crew.h"

enum crew_task { CREW_SHRINK, CREW_PROBE, CREW_DECODE };

struct crew_question {
    enum crew_task task;
    union {
        struct image_shrinking shrinking;
        struct {
            struct crew_decoding wanted;
            uint64_t mapped; /* the length of the slot: its descriptor comes with the question where that is new */
        } decoding;
    };
    uint64_t length;
}; /* and the file; but where it is decoded that lies in the slot, behind the room for its pixels */

struct crew_answer {
    enum image_verdict verdict;
    struct image_reason reason;
    struct image_info info;
    uint64_t length;
}; /* and the file */

#endif
