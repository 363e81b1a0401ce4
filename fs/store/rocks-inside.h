/* What the files of RocksDB's wrapper share. */
#ifndef FS_STORE_ROCKS_INSIDE_H
#define FS_STORE_ROCKS_INSIDE_H

#include "fs/store/index.h"
#include "fs/store/rocks.h"

#include <endian.h>
#include <rocksdb/c.h>

enum {
    ROCKS_XXH3 = 4,       /* RocksDB's number for that kind of checksums */
    ROCKS_TABLE_FORM = 5, /* of its files */
    ROCKS_NOTED = 32,     /* files that are taken in at once */
};

struct rocks {
    char *directory;
    int note; /* the tier's lock file, which is the caller's */
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

/* As rocks_open, in two steps: the struct, and what its lists lead to, which are believed. */
int rocks_create(const struct rocks_config *config, struct rocks **rocks);
int rocks_open_listed(struct rocks *r, struct str *why);

int rocks_open_path(const struct rocks *r, const char *path); /* a descriptor for rocks_read, or -errno */
char *rocks_buffer(uint64_t bytes);                           /* for rocks_read of `bytes`; NULL: no memory */

/* Can RocksDB read of this file, of a segment, what it reads by itself when it opens its database, and with `data` also
 * when it takes the file in? 0; -EBADMSG: it is damaged; else why that cannot be said. */
int rocks_check_table(int fd, bool data);

/* What a process is about to have RocksDB read, and may die of. The inodes of files; `list`: all that the database
 * lists. */
struct rocks_note {
    uint32_t list, files;
    uint64_t inode[ROCKS_NOTED];
};
int rocks_note_write(const struct rocks *r, const struct rocks_note *note);
int rocks_note_clear(const struct rocks *r);
int rocks_note_read(const struct rocks *r, struct rocks_note *note); /* empty where there is none */

#endif
