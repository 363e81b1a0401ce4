/* The little of RocksDB that a tier uses: whole sorted files in, ordered reads, whole files out. Its errors become
 * errno here.
 *
 * Keys are 8 bytes, big-endian: the segment's number and the value's place in it. A segment is one file. */
#ifndef FS_STORE_ROCKS_H
#define FS_STORE_ROCKS_H

#include "fs/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ROCKS_NAME = 32 };

struct rocks;
struct rocks_writer;
struct rocks_cursor;

struct rocks_config {
    const char *directory; /* the database is DIRECTORY/db, files under construction DIRECTORY/new-* */
    bool ram;              /* read through mmap; else direct reads */
    uint64_t segments;     /* about so many are to be expected */
};

/* -EBUSY: another process, or this one, has it open. -EBADMSG: damaged: rocks_remove and open again. Else the errno
 * of what failed; `why` has RocksDB's words for it. */
int rocks_open(const struct rocks_config *config, struct rocks **rocks, struct str *why);
void rocks_close(struct rocks *rocks);
int rocks_remove(const char *directory);    /* everything that was stored there */
uint64_t rocks_overhead(uint64_t segments); /* at most so many bytes beside the segments' files */

/* Each file that is there, as one segment; `whole` is false where it cannot be one. */
struct rocks_file {
    uint32_t segment;
    bool whole;
    uint64_t bytes;
    char name[ROCKS_NAME];
};
int rocks_list(struct rocks *rocks, int (*found)(void *user, const struct rocks_file *file), void *user);
/* For reads past RocksDB: direct ones where the file system can, but for tmpfs. -EMFILE also where descriptors must be
 * left for others. */
int rocks_open_file(struct rocks *rocks, const char *name, int *fd);
bool rocks_has(struct rocks *rocks, uint32_t segment);
int rocks_drop(struct rocks *rocks, uint32_t segment); /* nobody may read it any more: its memory is unmapped */

/* A new segment: values by ascending place; `at` tells where the value begins in the file. After rocks_write_end
 * returned 0 it survives any crash; `bytes` is the length of its file, `fd` as from rocks_open_file, or -1: the file
 * cannot be opened, or the values lie elsewhere. End and cancel free the writer. */
int rocks_write_begin(struct rocks *rocks, uint32_t segment, struct rocks_writer **writer);
int rocks_write_put(struct rocks_writer *writer, uint32_t place, const void *bytes, size_t n, uint64_t *at);
int rocks_write_end(struct rocks_writer *writer, uint64_t *bytes, int *fd);
void rocks_write_cancel(struct rocks_writer *writer);

/* Reads of one segment that was stored before the cursor was opened, for what is not known otherwise: the bytes are
 * RocksDB's, until the cursor is closed. `values`: about so many will be read, in a row. */
struct rocks_cursor *rocks_cursor_open(struct rocks *rocks, uint32_t segment, int values);
int rocks_cursor_get(struct rocks_cursor *cursor, uint32_t place, const void **bytes, size_t *n);
void rocks_cursor_close(struct rocks_cursor *cursor);

#endif
