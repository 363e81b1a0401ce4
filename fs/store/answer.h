/* The answer to a read: the bytes of a span. */
#ifndef FS_STORE_ANSWER_H
#define FS_STORE_ANSWER_H

#include "fs/catalog/catalog.h"
#include "fs/wire/units.h"

#include <stdbool.h>
#include <sys/uio.h>

/* An answer: the bytes of a span, in order, in pieces that stay valid until answer_release. Before use, only the counts
 * must be zero. A piece may be as short as a block of a value; one piece may need several pins. */
enum {
    ANSWER_VALUES = SPAN_BYTES / VALUE_BYTES + 1,
    ANSWER_PIECES = SPAN_BYTES / VALUE_BLOCK + 1,
    ANSWER_PINS = 3 * ANSWER_VALUES + 1,
};
struct answer {
    int pieces;
    int pins;
    struct {
        void (*release)(void *object);
        void *object;
    } pin[ANSWER_PINS];
    struct iovec piece[ANSWER_PIECES];
};

static inline void answer_init(struct answer *a)
{
    a->pieces = a->pins = 0;
}

static inline void answer_add(struct answer *a, const void *bytes, size_t n)
{
    a->piece[a->pieces++] = (struct iovec){(void *)bytes, n};
}

static inline void answer_pin(struct answer *a, void (*release)(void *), void *object)
{
    a->pin[a->pins].release = release;
    a->pin[a->pins++].object = object;
}

static inline void answer_release(struct answer *a)
{
    while (a->pins > 0) {
        a->pins--;
        a->pin[a->pins].release(a->pin[a->pins].object);
    }
    a->pieces = 0;
}

/* Append the answer of a layer to `to`. -EIO: it is not exactly span->length bytes, or has too many pieces; then it is
 * released. */
int answer_append(struct answer *to, struct answer *from, const struct span *span);

/* Is the file cached in parts? Then its raw values are stored in blocks, since reads may be random. */
static inline bool file_in_blocks(const struct catalog *c, uint32_t file)
{
    return catalog_file(c, file).size > PIECE_BYTES;
}

/* Number of values of a file. */
static inline uint64_t file_values(const struct catalog *c, uint32_t file)
{
    return (catalog_file(c, file).size + VALUE_BYTES - 1) / VALUE_BYTES;
}

static inline uint32_t value_raw(const struct catalog *c, uint32_t file, uint64_t value)
{
    uint64_t left = catalog_file(c, file).size - value * VALUE_BYTES;
    return left < VALUE_BYTES ? (uint32_t)left : VALUE_BYTES;
}

#endif
