/* A rank's epoch as bytes: its samples, concatenated.
 *
 *   │ sample │ sample │ … │ sample │ end │      end: two blocks of zeros after the records of a tar, else nothing
 *
 * A stream of records is a valid file of their containers' format. In a tar, `unique` puts the record's position in the
 * stream before its key, since readers merge neighbouring records with the same key.
 *
 * Immutable and reference-counted. Where samples begin follows from the list; a mark for every few samples is kept in
 * scratch memory. */
#ifndef FS_CONTROL_EPOCH_STREAM_H
#define FS_CONTROL_EPOCH_STREAM_H

#include "fs/base/str.h"
#include "fs/catalog/samples.h"
#include "fs/control/budget.h"

struct epoch_stream;

/* Which stream this is. */
struct stream_identity {
    uint64_t epoch;
    struct digest digest;    /* of the plan */
    uint64_t samples, bytes; /* of the rank's whole list */
    uint32_t rank;
    uint32_t workers, worker; /* 1, 0: the whole list */
};

/* What to create a stream of: these samples of the list, which it keeps a reference to. `directory`: for scratch
 * memory, or NULL. Owns the charge, and adds its own memory. -EFBIG: no file can be that long; -ENOMEM, …: see
 * `why`. */
struct stream_terms {
    struct samples *list;
    const uint32_t *sample; /* array of n */
    uint64_t n;
    bool unique;
    const char *directory;
    struct stream_identity of;
};
int epoch_stream_create(const struct stream_terms *terms, struct charge *charge, struct epoch_stream **stream,
                        struct str *why);
struct epoch_stream *epoch_stream_get(struct epoch_stream *stream);
void epoch_stream_put(struct epoch_stream *stream); /* NULL is allowed */
uint64_t epoch_stream_length(const struct epoch_stream *stream);
uint64_t epoch_stream_memory(const struct epoch_stream *stream);

/* A sample in the stream. */
struct stream_sample {
    uint64_t number; /* in the stream, from 0 */
    uint32_t sample; /* in the list */
    uint64_t from;   /* where it begins in the stream, */
    uint64_t to;     /* and where it ends */
};
/* Find the sample with the byte at `offset`; false: `offset` is after all samples. */
bool epoch_stream_find(const struct epoch_stream *stream, uint64_t offset, struct stream_sample *found);
bool epoch_stream_next(const struct epoch_stream *stream, struct stream_sample *sample);
uint64_t epoch_stream_count(const struct epoch_stream *stream);
uint64_t epoch_stream_place(const struct epoch_stream *stream, uint64_t number); /* where this sample begins */
uint64_t epoch_stream_serial(const struct epoch_stream *stream); /* no other stream of this process has it */
const struct stream_identity *epoch_stream_identity(const struct epoch_stream *stream);
const struct samples *epoch_stream_list(const struct epoch_stream *stream);
/* headers in the stream have other names than in the files */
bool epoch_stream_renames(const struct epoch_stream *stream);

/* Append n + 1 u64, little-endian: where each sample begins in the stream, and where the last one ends. */
int epoch_stream_spans(const struct samples *list, const uint32_t *sample, uint64_t n, struct str *text,
                       struct str *why);

#endif
