/* Storing a sealed segment: its live values become a file of RocksDB. By the tier's thread. */
#ifndef FS_STORE_INGEST_H
#define FS_STORE_INGEST_H

#include "fs/store/stock.h"

/* The segment is STORING. Afterwards it is DRAINING; SEALED where it is to be tried again; or STUCK, and the tier is
 * closed. */
void ingest_segment(struct stock *k, struct segment *s);

#endif
