/* A new segment's file, written by the tier's thread: value by value in the order of places, then the index record. */
#ifndef FS_STORE_WRITER_H
#define FS_STORE_WRITER_H

#include "fs/store/stock.h"

struct segment_writer {
    const struct stock *stock;
    uint32_t number;
    struct rocks_writer *rocks;
    struct index index;
};

/* Also after any of these have failed: fini. */
int writer_begin(const struct stock *k, uint32_t number, struct segment_writer *w);
int writer_put(struct segment_writer *w, uint32_t place, const struct value_place *value, const void *bytes);
int writer_end(struct segment_writer *w, struct segment_file **file); /* 0: it is stored, and can be read */
void writer_fini(struct segment_writer *w);

#endif
