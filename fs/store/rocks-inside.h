/* What the files of RocksDB's wrapper share. */
#ifndef FS_STORE_ROCKS_INSIDE_H
#define FS_STORE_ROCKS_INSIDE_H

#include "fs/store/index.h"
#include "fs/store/rocks.h"

#include <endian.h>
#include <rocksdb/c.h>

struct rocks {
    char *directory;
    bool direct;
    int descriptors; /* files of our own have lower numbers */
    rocksdb_t *db;
    rocksdb_options_t *options;
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

/* The errno of RocksDB's words for an error, which are freed, and added to `why` (or NULL). 0 for NULL. */
int rocks_take_error(char *words, struct str *why);
/* The same, after saying them: what failed, and where. */
int rocks_log_error(char *words, const char *what, const char *where);

/* As rocks_open, of a database whose lists are sound. */
int rocks_open_once(const struct rocks_config *config, struct rocks **rocks, struct str *why);

#endif
