/* Stores a sealed segment: its live values become a file of RocksDB. Only the tier's thread calls this. */
#ifndef FS_STORE_INGEST_H
#define FS_STORE_INGEST_H

#include "fs/store/stock.h"

/* The segment is in state STORING. Afterwards it is DRAINING; or SEALED, to be tried again; or STUCK, and the tier
 * is closed. */
void ingest_segment(struct stock *k, struct segment *s);

#endif
