/* Shared by the files of RocksDB's wrapper. */
#ifndef FS_STORE_ROCKS_INSIDE_H
#define FS_STORE_ROCKS_INSIDE_H

#include "fs/store/index.h"
#include "fs/store/rocks.h"

#include <endian.h>
#include <rocksdb/c.h>

enum {
    ROCKS_XXH64 = 3,      /* RocksDB's numbers for kinds of checksums */
    ROCKS_XXH3 = 4,       /* its build for all processors takes three times as long */
    ROCKS_TABLE_FORM = 5, /* version of RocksDB's file format */
    ROCKS_NOTED = 32,     /* maximum number of files that are ingested together */
};

struct rocks {
    char *directory;
    int note; /* the tier's lock file; the caller owns it */
    bool direct;
    int descriptors; /* only lower numbers are used for our files */
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

/* Convert RocksDB's error text to an errno. Frees the text; appends it to `why` (may be NULL). NULL is 0. */
int rocks_take_error(char *words, struct str *why);
/* The same, and log it: what failed, on which path. */
int rocks_log_error(char *words, const char *what, const char *where);

/* The two steps of rocks_open: the struct, and the database, whose lists are trusted. */
int rocks_create(const struct rocks_config *config, struct rocks **rocks);
int rocks_open_listed(struct rocks *r, struct str *why);

int rocks_open_path(const struct rocks *r, const char *path); /* a descriptor for rocks_read, or -errno */
char *rocks_buffer(uint64_t bytes);                           /* for rocks_read of `bytes`; NULL: no memory */

/* Can RocksDB safely read what it reads by itself from this file of a segment when it opens the database? With `data`:
 * also when it ingests the file. 0; -EBADMSG: damaged; otherwise the check failed. */
int rocks_check_table(int fd, bool data);

/* The same for the lists of the files: -EBADMSG and why, if they are damaged. */
int rocks_check_lists(const char *directory, struct str *why);

/* What this process is about to have RocksDB read, and may die of: inodes of files. `list`: all files that the
 * database lists. */
struct rocks_note {
    uint32_t list, files;
    uint64_t inode[ROCKS_NOTED];
};
int rocks_note_write(const struct rocks *r, const struct rocks_note *note);
int rocks_note_clear(const struct rocks *r);
int rocks_note_read(const struct rocks *r, struct rocks_note *note); /* empty if there is none */

#endif
