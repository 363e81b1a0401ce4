/* The units of the store.
 *
 *   extent   the unit of ownership: a file of up to 64 MiB, else each 64 MiB stripe of it
 *   part     the unit that is held or not: a whole file of up to 4 MiB, else one value of it
 *   value    up to 128 KiB of a file: what RocksDB stores
 *   span     any bytes of one file: what a reader asks for
 */
#ifndef FS_STORE_SPAN_H
#define FS_STORE_SPAN_H

#include "fs/catalog/catalog.h"
#include "fs/catalog/cut.h"
#include "fs/store/value.h"

#include <stdint.h>
#include <sys/uio.h>

#define VALUE_BYTES (128u << 10)
#define PIECE_BYTES (4u << 20) /* at most this much is read from the source at once */
#define EXTENT_BYTES (64u << 20)
#define SPAN_BYTES (1u << 20) /* the longest span: the longest READ */

struct span {
    uint32_t file;
    uint32_t length; /* 1…SPAN_BYTES; the span lies within the file */
    uint64_t offset;
};

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

/* How the files of a catalog are cut into parts: a file of up to a piece is one, a larger one has one for each value.
 */
static inline int parts_init(struct cut *parts, const struct catalog *catalog)
{
    return cut_init(parts, catalog, PIECE_BYTES, __builtin_ctz(VALUE_BYTES));
}

#endif
