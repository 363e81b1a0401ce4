/* The layout file as C structs; the file FORMAT describes it byte by byte. Only the layout's files and their tests may
 * include this. */
#ifndef FS_WORLD_LAYOUT_INSIDE_H
#define FS_WORLD_LAYOUT_INSIDE_H

#include "fs/world/layout.h"

#include <stdatomic.h>

#define LAYOUT_MAGIC "DEALFSLT"
enum { LAYOUT_VERSION = 1, LAYOUT_ENDIAN = 0x01020304 };

struct layout_header {
    char magic[8];
    uint32_t version, endian;
    uint64_t length;
    struct digest checksum, digest, catalog;
    uint64_t extents;
    uint32_t nodes, groups;
    uint8_t zero[40];
};

_Static_assert(sizeof(struct layout_header) == 128, "header");
_Static_assert(sizeof(struct layout_record) == 128, "node record");
_Static_assert(NODE_ID <= 40 && NODE_HOST <= 72, "they fit");

/* An image in memory: the header, one record per node, then for each group one owner per extent. */
struct layout {
    _Atomic uint32_t refs;
    const struct layout_header *header;
    const struct layout_record *record;
    const uint16_t *owner;
    uint64_t *owned;  /* bytes per node */
    uint64_t unowned; /* number of extents without an owner, over all groups */
    void *map;        /* set: mapped from a file */
    void *image;      /* set: allocated */
    size_t length;    /* if both are NULL, the image is borrowed */
};

uint64_t layout_length(uint64_t extents, uint32_t nodes, uint32_t groups); /* length of the file; 0: too large */
bool layout_is_id(const char *id);                                         /* 32 hexadecimal digits */
struct digest layout_digest_of(const void *image);
struct digest layout_checksum_of(const void *image);

/* Check all of an image, and make a layout of it. The image is borrowed. -EBADMSG, -ENOMEM. */
int layout_from_memory(const void *image, size_t n, const struct catalog *catalog, struct layout **layout);
/* The same for an image whose header and hashes were checked. */
int layout_from_image(const void *image, size_t n, const struct extents *extents, struct layout **layout);

#endif
