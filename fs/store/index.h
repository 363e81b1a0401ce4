/* The index record of a segment: which value lies at which place, and of which file it is. Described byte by byte in
 * FORMAT. A run is consecutive values of one file at consecutive places. */
#ifndef FS_STORE_INDEX_H
#define FS_STORE_INDEX_H

#include "fs/base/str.h"
#include "fs/catalog/catalog.h"

enum { SEGMENT_PLACES = 65536 };
#define INDEX_PLACE 0xffffffffu /* where the record itself stands in its segment */

struct index_run {
    struct digest identity; /* of the file in this version, whatever its number */
    uint32_t file, value;   /* the file's number in the catalog of the record, and the first value's in the file */
    uint32_t place, count;
};

struct index_value {
    uint32_t length; /* as stored */
    uint32_t at;     /* where it begins in the segment's file */
};

/* A value at a place, while its segment is filled or written. */
struct value_place {
    uint32_t file, value; /* which value of which file */
    uint32_t at;          /* where it begins, at its header: in the staging, or in the file */
    uint32_t length;      /* as stored; 0: nothing lies here */
};

struct index {
    struct digest versions; /* of the catalog whose numbers the runs have */
    uint32_t runs, values, replaced;
    struct index_run *run;                          /* by place, ascending */
    struct index_value *value;                      /* in the order of the runs */
    uint32_t *replaces;                             /* segments whose live values were all moved to this one */
    uint32_t room_runs, room_values, room_replaced; /* of arrays that are being filled; */
    struct str record;                              /* else they are parts of it */
};

/* Values are added in the order of their places. 0 or -ENOMEM. */
int index_add(struct index *index, const struct catalog *c, uint32_t place, const struct value_place *value);
int index_replace(struct index *index, uint32_t segment);
int index_encode(const struct index *index, uint32_t segment, struct str *out);

/* The record of a segment, which is the last one in these bytes, the end of its file: 0; -ENOENT: none begins there;
 * -EBADMSG: it is damaged, as far as can be told without a catalog; -ENOMEM. The bytes are copied. */
int index_find(struct index *index, uint32_t segment, const void *bytes, size_t n);
void index_fini(struct index *index);

#endif
