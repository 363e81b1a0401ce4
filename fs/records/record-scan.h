/* A container while its records are found: its bytes through a window of bounded memory, and the records.
 *
 * Nothing here does I/O: bytes come from `read`, records go to `found`, both given by the caller. */
#ifndef FS_RECORDS_RECORD_SCAN_H
#define FS_RECORDS_RECORD_SCAN_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct found_record {
    uint64_t offset;
    uint32_t length;
    const char *key; /* bytes, without a NUL behind them; NULL: the format has no keys */
    size_t key_length;
    bool unended; /* a line without the newline that the others end with */
};

struct container_format;

enum { SCAN_WINDOW = 1 << 20 };

struct record_scan {
    /* Given by the caller. */
    uint64_t size;                                                /* of the container */
    int (*read)(void *user, void *to, size_t n, uint64_t offset); /* all n bytes: 0; else -errno */
    int (*found)(void *user, const struct found_record *record);  /* not 0: ends the scan, which returns it */
    bool (*gave_up)(void *user); /* true: end with -EINTR; called often, also while nothing is read. NULL: never */
    void *user;
    uint64_t most;                         /* records; one more ends the scan with -E2BIG */
    const struct container_format *format; /* NULL: recognised by the content; afterwards, the one recognised */
    uint32_t row;                          /* bytes of a row, for the format `fixed` */
    struct str *why;                       /* gets "offset N: what is wrong" */

    /* The bytes that were read last. */
    unsigned char *window;
    uint64_t begin;
    size_t filled;
    int error;      /* of a look that returned NULL */
    uint64_t count; /* of records that were found */
    bool unended;   /* of the next record */
};

/* For formats: the bytes at an offset, valid until the next call. n <= SCAN_WINDOW, and all of them are within the
 * container. Bytes that follow each other closely are read in large pieces, others in small ones. NULL: `error`. */
const unsigned char *scan_look(struct record_scan *s, uint64_t offset, size_t n);
/* All bytes from an offset within the container on that are in the window; at least one. */
const unsigned char *scan_rest(struct record_scan *s, uint64_t offset, size_t *n);
/* A record. -EFBIG: it has 4 GiB or more; -E2BIG, -EINTR: see above. */
int scan_found(struct record_scan *s, uint64_t offset, uint64_t length, const char *key, size_t key_length);
/* Would n more records be too many? 0 or -E2BIG. For formats that know the number of records before they find them. */
int scan_expect(struct record_scan *s, uint64_t n);
/* The container is broken at an offset: returns -EBADMSG. */
int scan_broken(struct record_scan *s, uint64_t offset, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
