/* The little of RocksDB that a tier uses: whole sorted files in, a list of them, whole files out. Its errors become
 * errno here. Values are read past it (segment-file.h).
 *
 * Keys are 8 bytes, big-endian: the segment's number and the value's place in it. A segment is one file. */
#ifndef FS_STORE_ROCKS_H
#define FS_STORE_ROCKS_H

#include "fs/base/str.h"

#include "fs/wire/units.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ROCKS_NAME = 32,
    ROCKS_FORM = 2,     /* of what is stored: fs/store/FORMAT */
    ROCKS_ALIGN = 4096, /* of direct reads: in the file and in memory */
};

struct rocks;
struct rocks_writer;

struct rocks_config {
    const char *directory; /* the database is DIRECTORY/db-2, files under construction DIRECTORY/new-* */
    bool ram;              /* its files are mapped; else they are read, directly where the file system can */
    uint64_t segments;     /* the expected number of segments */
    int note;              /* the tier's lock file: what is being taken in is noted there */
};

/* Does the error prove that something stored is damaged or gone? No other does: what a disk says may pass, and what a
 * library says in words that are not known may be about itself. */
static inline bool rocks_is_damage(int error)
{
    return error == -EBADMSG || error == -ENOENT;
}

/* A database whose lists are damaged is rebuilt from the segments that are there. Those that are damaged are dropped,
 * and so are those of which the process before this one died. -EBUSY: another process, or this one, has it open. Else
 * the errno of what failed; `why` has RocksDB's words for it. */
int rocks_open(const struct rocks_config *config, struct rocks **rocks, struct str *why);
void rocks_close(struct rocks *rocks);
uint64_t rocks_overhead(uint64_t segments); /* most bytes in addition to the segments' files */

/* Each file that is there, as one segment; `whole` is false where it cannot be one. */
struct rocks_file {
    uint32_t segment;
    bool whole;
    uint64_t bytes;
    char name[ROCKS_NAME];
};
int rocks_list(struct rocks *rocks, struct rocks_file **files, size_t *count);  /* to be freed; also with an error */
int rocks_find(struct rocks *rocks, uint32_t segment, struct rocks_file *file); /* -ENOENT */
/* A descriptor, or -errno. `spare`: it may be kept, there are enough for others. */
int rocks_open_file(const struct rocks *rocks, const char *name, bool *spare);
/* Read the file's bytes from…to; returns where the first of them is in `buffer`, which is aligned and has room for
 * ROCKS_ALIGN bytes more at either end. NULL: `error` says why; -EBADMSG: the file is too short. */
const char *rocks_read(int fd, uint64_t from, uint64_t to, char *buffer, int *error);
int rocks_drop(struct rocks *rocks, uint32_t segment);

/* A new segment: values by ascending place; `at` tells where the value begins in the file. After rocks_write_end
 * returned 0 it survives any crash, and `file` is it. End and cancel free the writer. */
int rocks_write_begin(struct rocks *rocks, uint32_t segment, struct rocks_writer **writer);
int rocks_write_put(struct rocks_writer *writer, uint32_t place, const void *bytes, size_t n, uint32_t *at);
int rocks_write_end(struct rocks_writer *writer, struct rocks_file *file);
void rocks_write_cancel(struct rocks_writer *writer);

#endif
