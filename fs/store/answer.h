/* What a reader gets for a span. */
#ifndef FS_STORE_ANSWER_H
#define FS_STORE_ANSWER_H

#include "fs/catalog/catalog.h"
#include "fs/wire/units.h"

#include <stdbool.h>
#include <sys/uio.h>

/* The bytes of a span, in order, as pieces that stay valid until answer_release. Only the counts are to be zero before
 * use. A piece is as short as a block of a value; what a piece lies in may need some pins. */
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

/* Move what a layer answered behind `to`; -EIO: it is not exactly span->length bytes, or too many pieces: released. */
int answer_append(struct answer *to, struct answer *from, const struct span *span);

/* Is it of a file that is not held as a whole? Then its raw values are kept in blocks: it may be read at random. */
static inline bool file_in_blocks(const struct catalog *c, uint32_t file)
{
    return catalog_file(c, file).size > PIECE_BYTES;
}

/* How a file is cut into values. */
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
