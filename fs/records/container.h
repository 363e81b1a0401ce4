/* The formats of containers: an open table, one file per format.
 *
 * A format says whether a container looks like one of its own, and finds the records in it. */
#ifndef FS_RECORDS_CONTAINER_H
#define FS_RECORDS_CONTAINER_H

#include "fs/records/record-scan.h"

struct container_format {
    const char *name;   /* as users write it */
    const char *stream; /* the format of its record list: what the records one after the other are */
    /* Is it this format, by its first n bytes (up to CONTAINER_HEAD)? NULL: it is never recognised. */
    bool (*recognise)(const unsigned char *head, size_t n, uint64_t size);
    int (*scan)(struct record_scan *s);
};

enum { CONTAINER_HEAD = 4096 };

extern const struct container_format container_tar;
extern const struct container_format container_tfrecord;
extern const struct container_format container_npy;
extern const struct container_format container_lines;
extern const struct container_format container_fixed;

const struct container_format *container_format_find(const char *name); /* NULL: there is none */

/* All records of a container, in the order of their offsets. 0; -EBADMSG: it is broken; -EFBIG: a record is too large;
 * -ENOTSUP: it is compressed, or of no known format (`why` says which); -E2BIG: it has too many; -EINTR; what `read` or
 * `found` returned; -ENOMEM.
 * Records may have been found before an error. */
int container_scan(struct record_scan *scan);

#endif
