/* The index record of a segment: for each place, which value of which file is there. FORMAT describes it byte by byte.
 * A run is a sequence of values of one file at consecutive places. */
#ifndef FS_STORE_INDEX_H
#define FS_STORE_INDEX_H

#include "fs/base/str.h"
#include "fs/catalog/catalog.h"

enum { SEGMENT_PLACES = 65536 };
#define INDEX_PLACE 0xffffffffu /* the place of the record itself */

struct index_run {
    struct digest identity; /* of this version of the file, independent of its number */
    uint32_t file, value;   /* file number in the record's catalog; number of its first value */
    uint32_t place, count;
};

struct index_value {
    uint32_t length; /* as stored */
    uint32_t at;     /* offset in the segment's file */
};

/* A value at a place, while its segment is being filled or written. */
struct value_place {
    uint32_t file, value; /* which value of which file */
    uint32_t at;          /* offset of its header in the staging or the file */
    uint32_t length;      /* as stored; 0: this place is empty */
};

struct index {
    struct digest versions; /* of the catalog with the runs' file numbers */
    uint32_t runs, values, replaced;
    struct index_run *run;                          /* by ascending place */
    struct index_value *value;                      /* in the order of the runs */
    uint32_t *replaces;                             /* segments whose live values were all moved to this one */
    uint32_t room_runs, room_values, room_replaced; /* capacities of the arrays while they are being filled */
    struct str record;                              /* a record that was read: then the arrays point into it */
};

/* Add values in ascending order of places. 0 or -ENOMEM. */
int index_add(struct index *index, const struct catalog *c, uint32_t place, const struct value_place *value);
int index_replace(struct index *index, uint32_t segment);
int index_encode(const struct index *index, uint32_t segment, struct str *out);

/* Find the record in these bytes, the end of a segment's file; the record is the last value. 0; -ENOENT: no record
 * begins there; -EBADMSG: damaged, as far as this can be seen without a catalog; -ENOMEM. The bytes are copied. */
int index_find(struct index *index, uint32_t segment, const void *bytes, size_t n);
void index_fini(struct index *index);

#endif
