/* The messages between a crew and its processes, over a socket. */
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
            uint64_t mapped; /* length of the slot; if it is new, its descriptor comes with the question */
        } decoding;
    };
    uint64_t length;
}; /* followed by the file; to be decoded, the file is in the slot, after the room for its pixels */

struct crew_answer {
    enum image_verdict verdict;
    struct image_reason reason;
    struct image_info info;
    uint64_t length;
}; /* followed by the file */

#endif
