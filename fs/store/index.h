/* The index record of a segment: which value lies at which place, and of which file it is. Described byte by byte in
 * FORMAT. A run is consecutive values of one file at consecutive places. */
#ifndef FS_STORE_INDEX_H
#define FS_STORE_INDEX_H

#include "fs/base/hash.h"
#include "fs/base/str.h"

#include <stddef.h>
#include <stdint.h>

enum { SEGMENT_PLACES = 65536 };
#define INDEX_PLACE 0xffffffffu /* where the record itself stands in its segment */

struct index_run {
    struct digest identity; /* of the file, whatever its number */
    uint32_t file, value;   /* the file's number in the catalog of the record, and the first value's in the file */
    uint32_t place, count;
};

struct index_value {
    uint32_t length; /* as stored */
    uint32_t at;     /* where it begins in the segment's file; 0: not known */
};

struct index {
    struct digest catalog;
    uint32_t runs, values, replaced;
    struct index_run *run;     /* by place, ascending */
    struct index_value *value; /* in the order of the runs */
    uint32_t *replaces;        /* segments whose live values were all moved to this one */
    uint32_t room_runs, room_values, room_replaced;
};

/* Values are added in the order of their places. When memory runs out, 0 becomes -ENOMEM. */
int index_add(struct index *index, uint32_t file, uint32_t value, uint32_t place, struct index_value stored,
              const struct digest *identity);
int index_replace(struct index *index, uint32_t segment);
bool index_continues(const struct index *index, uint32_t file, uint32_t value, uint32_t place);
int index_encode(const struct index *index, uint32_t segment, struct str *out);

/* Checks all that can be checked without a catalog: 0, -EBADMSG, -ENOMEM. The bytes are copied. */
int index_decode(struct index *index, uint32_t segment, const void *bytes, size_t n);
/* Where the record of a segment stands in the bytes of its file, and its length; 0: not found. */
size_t index_look(const void *file, size_t n, uint32_t segment, size_t *at);
void index_fini(struct index *index);

#endif
