/* The directory file as C sees it; FORMAT beside this describes it byte by byte. For the directory's files and their
 * tests only. */
#ifndef FS_WORLD_DIRECTORY_FORMAT_H
#define FS_WORLD_DIRECTORY_FORMAT_H

#include "fs/world/directory.h"

#define DIRECTORY_MAGIC "DEALFSDR"
enum { DIRECTORY_VERSION = 1, DIRECTORY_ENDIAN = 0x01020304 };

struct directory_header {
    char magic[8];
    uint32_t version, endian;
    uint64_t length;
    struct digest checksum, digest, catalog;
    uint64_t extents;
    uint32_t nodes, groups;
    uint8_t zero[40];
};

struct directory_record {
    char id[40], host[72]; /* NUL to the end */
    uint64_t capacity;
    uint64_t zero;
};

_Static_assert(sizeof(struct directory_header) == 128, "header");
_Static_assert(sizeof(struct directory_record) == 128, "node record");
_Static_assert(NODE_ID <= 40 && NODE_HOST <= 72, "they fit");

/* An image in memory: header, a record a node, then for each group an owner an extent. */
struct directory {
    const struct directory_header *header;
    const struct directory_record *record;
    const uint16_t *owner;
    struct world_node *node;
    struct {
        uint64_t bytes, extents;
    } * owned;        /* a node */
    uint64_t unowned; /* extents, of all groups */
    void *map;     /* mapped from a file, */
    void *image;   /* or made here, */
    size_t length; /* or, if both are NULL, borrowed */
};

uint64_t directory_length(uint64_t extents, uint32_t nodes, uint32_t groups); /* of the file; 0: too much */
struct digest directory_digest_of(const void *image);
struct digest directory_checksum_of(const void *image);

/* Check all of an image and look it over; it is borrowed. -EBADMSG, -ENOMEM. */
int directory_from_memory(const void *image, size_t n, const struct catalog *catalog, struct directory **directory);
/* The same of one whose header and hashes fit. */
int directory_from_image(const void *image, size_t n, const struct extents *extents, struct directory **directory);

static inline uint32_t directory_group_of(uint32_t node, uint32_t nodes, uint32_t groups)
{
    return (uint32_t)((uint64_t)node * groups / nodes);
}

#endif
