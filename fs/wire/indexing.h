/* How a node answers another one that asks for the records of a container that it owns: `index` on the control stream,
 * and the blobs of fs/control/index-parts.c. */
#ifndef FS_WIRE_INDEXING_H
#define FS_WIRE_INDEXING_H

#include <stdint.h>

enum index_state {
    INDEX_HERE,    /* no other node parses it: the asking node does */
    INDEX_RUNS,    /* ask again */
    INDEX_DONE,    /* the records follow */
    INDEX_REFUSED, /* the container is broken, compressed or of no known format: the reason follows */
    INDEX_STATES
};

/* The start of the first piece; in the byte order that all nodes of a world share. */
struct index_answer {
    uint32_t state;
    uint32_t text;   /* DONE: the records are lines of text; else struct record */
    int32_t error;   /* REFUSED: -errno of container_scan */
    char format[20]; /* container_format.name */
    uint64_t records;
    uint64_t seen;   /* bytes of the container that were parsed so far */
    uint64_t worked; /* the same for all containers together: grows while the node works */
    uint64_t length; /* bytes that follow, in all pieces together */
};
_Static_assert(sizeof(struct index_answer) == 64, "index_answer");

enum { INDEX_PIECE = 1 << 20 }; /* length of a reply; the last one is shorter */

#endif
