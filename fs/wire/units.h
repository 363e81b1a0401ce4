/* The units in which bytes are cached and requested.
 *
 *   extent   the unit of ownership: a file of up to 64 MiB, else each 64 MiB stripe of it
 *   part     the unit that is cached as a whole or not at all: a file of up to 4 MiB, else one value of it
 *   value    up to 128 KiB of a file, as it is stored: a header and its bytes, raw, compressed or in blocks
 *   span     consecutive bytes of one file, as a reader requests them
 */
#ifndef FS_WIRE_UNITS_H
#define FS_WIRE_UNITS_H

#include <stdint.h>

#define VALUE_BYTES (128u << 10)
#define PIECE_BYTES (4u << 20) /* at most this much is read from the source at once */
#define EXTENT_BYTES (64u << 20)
#define SPAN_BYTES (1u << 20) /* the longest span: the longest READ */

#define ROCKS_DATABASE "db-2" /* a shard's database, in its folder; the number is ROCKS_FORM */

/* Consecutive values of one file. */
struct value_run {
    uint32_t file, first, count;
};

struct span {
    uint32_t file;
    uint32_t length; /* at least 1; of a read at most SPAN_BYTES. The span lies within the file */
    uint64_t offset;
};

enum {
    VALUE_HEADER = 16,
    VALUE_BLOCK = 4096,
    VALUE_SUM = 8,                                              /* before each block */
    VALUE_MOST = VALUE_HEADER + 32 * (VALUE_SUM + VALUE_BLOCK), /* the longest stored value */
};

#endif
