/* What the files of RocksDB's wrapper share. */
#ifndef FS_STORE_ROCKS_INSIDE_H
#define FS_STORE_ROCKS_INSIDE_H

#include "fs/store/index.h"
#include "fs/store/rocks.h"

#include <endian.h>
#include <rocksdb/c.h>

struct rocks {
    char *directory;
    bool ram, direct;
    int descriptors; /* files of our own have lower numbers */
    rocksdb_t *db;
    rocksdb_options_t *options;
    rocksdb_readoptions_t *one, *many; /* to read one value, or several in a row */
    rocksdb_ingestexternalfileoptions_t *ingest;
    rocksdb_envoptions_t *env;
};

struct rocks_key {
    uint32_t segment, place;
};

static inline struct rocks_key rocks_key(uint32_t segment, uint32_t place)
{
    return (struct rocks_key){htobe32(segment), htobe32(place)};
}

/* Frees `words`, RocksDB's own for an error, after saying them: what failed, and where. 0 for NULL. */
int rocks_log_error(char *words, const char *what, const char *where);

/* Of a file that was just opened: 0, or the error; -EMFILE: the number is one of those that are left to others. */
int rocks_check_descriptor(const struct rocks *r, int fd);
void rocks_go_direct(const struct rocks *r, int fd);

#endif
