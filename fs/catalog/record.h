/* A record: a range of a file. A record list is an array of them, on disk, in memory, and in a packed upload: 20 bytes
 * each, little-endian. */
#ifndef FS_CATALOG_RECORD_H
#define FS_CATALOG_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record {
    uint32_t file;
    uint32_t length; /* in the file */
    uint64_t place;  /* its offset in the file | RECORD_NEWLINE */
    uint32_t label;
} __attribute__((packed));
_Static_assert(sizeof(struct record) == 20, "record");

#define RECORD_NO_LABEL UINT32_MAX
#define RECORD_LENGTH_MOST UINT32_MAX
#define RECORD_NEWLINE (UINT64_C(1) << 63) /* streams add the newline that the last line of a file lacks */

static inline uint64_t record_offset(const struct record *r)
{
    return r->place & ~RECORD_NEWLINE;
}
/* Its bytes in a stream. */
static inline uint64_t record_streamed(const struct record *r)
{
    return r->length + (uint64_t)((r->place & RECORD_NEWLINE) != 0);
}

/* Append it in the form of `samples form=packed`, or as a line without a label for `form=records`; `key`: n bytes,
 * or NULL. */
struct str;
void record_add_packed(const struct record *record, struct str *out);
void record_add_text(const struct record *record, const char *path, const char *key, size_t n, struct str *out);

/* Format of the containers; streams have the same format. */
enum record_format { RECORDS_PLAIN, RECORDS_TAR, RECORDS_TFRECORD, RECORDS_LINES, RECORDS_FIXED };
#define RECORD_FORMATS "tar|tfrecord|lines|fixed" /* numbered from 1 */

struct record_traits {
    uint32_t format; /* enum record_format */
    uint32_t keyed;  /* the list was uploaded with keys */
    uint32_t first;  /* two records with the same key; equal numbers: all keys differ */
    uint32_t second;
};

#endif
