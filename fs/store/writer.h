/* Writes the file of a new segment: value by value in the order of places, then the index record. Only the tier's
 * thread calls this. */
#ifndef FS_STORE_WRITER_H
#define FS_STORE_WRITER_H

#include "fs/store/stock.h"

struct segment_writer {
    const struct stock *stock;
    uint32_t number;
    struct rocks_writer *rocks;
    struct index index;
};

/* Call fini even if one of these has failed. */
int writer_begin(const struct stock *k, uint32_t number, struct segment_writer *w);
int writer_put(struct segment_writer *w, uint32_t place, const struct value_place *value, const void *bytes);
int writer_end(struct segment_writer *w, struct segment_file **file); /* 0: the segment is stored and readable */
void writer_fini(struct segment_writer *w);

#endif
