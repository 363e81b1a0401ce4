/* The little of RocksDB that a tier uses: ingest sorted files, list files, drop files. RocksDB's errors become errno
 * here. Values are read directly from the files (segment-file.h).
 *
 * A segment is one file. Keys have 8 bytes, big-endian: the segment's number and the value's place. */
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
    ROCKS_FORM = 2,     /* of the stored data: fs/store/FORMAT */
    ROCKS_ALIGN = 4096, /* of direct reads, in the file and in memory */
};

struct rocks;
struct rocks_writer;

struct rocks_config {
    const char *directory; /* has the database, db-2, and files under construction, new-* */
    bool ram;              /* files are mapped; otherwise read, with O_DIRECT if the filesystem allows it */
    uint64_t segments;     /* expected number of segments */
    int note;              /* the tier's lock file, for notes about files that are being ingested */
};

/* Does the error prove that stored data is damaged or missing? Errors of the disk may pass, and unknown errors of
 * RocksDB may be its own. */
static inline bool rocks_is_damage(int error)
{
    return error == -EBADMSG || error == -ENOENT;
}

/* Open a database; if its lists are damaged, rebuild it from the segments. Damaged segments are dropped, also those
 * that killed the previous process. -EBUSY: a process has it open. Otherwise the errno of the failure; `why` gets
 * RocksDB's text. */
int rocks_open(const struct rocks_config *config, struct rocks **rocks, struct str *why);
void rocks_close(struct rocks *rocks);
uint64_t rocks_overhead(uint64_t segments); /* maximum bytes in addition to the segments' files */

/* A file, as a segment. `whole` false: it cannot be one. */
struct rocks_file {
    uint32_t segment;
    bool whole;
    uint64_t bytes;
    char name[ROCKS_NAME];
};
int rocks_list(struct rocks *rocks, struct rocks_file **files, size_t *count);  /* free `files`, also after an error */
int rocks_find(struct rocks *rocks, uint32_t segment, struct rocks_file *file); /* -ENOENT */
/* A descriptor, or -errno. `spare`: the caller may keep it open; enough descriptors remain. */
int rocks_open_file(const struct rocks *rocks, const char *name, bool *spare);
/* Read bytes from…to of the file. Returns where the first of them is in `buffer`, which must be aligned and have
 * ROCKS_ALIGN extra bytes at each end. NULL: see `error`; -EBADMSG: the file is too short. */
const char *rocks_read(int fd, uint64_t from, uint64_t to, char *buffer, int *error);
int rocks_drop(struct rocks *rocks, uint32_t segment);
/* The same, for a file on a tmpfs. Its memory is freed although another process may have it open, which then reads
 * zeros. Whole pages are freed, also huge ones. */
enum { ROCKS_HUGE_PAGE = 2 << 20 };
int rocks_drop_open(struct rocks *rocks, const struct rocks_file *file);

/* Write a new segment, values by ascending place. `at`: the value's offset in the file. When rocks_write_end has
 * returned 0, the segment survives any crash, and `file` describes it. End and cancel free the writer. */
int rocks_write_begin(struct rocks *rocks, uint32_t segment, struct rocks_writer **writer);
int rocks_write_put(struct rocks_writer *writer, uint32_t place, const void *bytes, size_t n, uint32_t *at);
int rocks_write_end(struct rocks_writer *writer, struct rocks_file *file);
void rocks_write_cancel(struct rocks_writer *writer);

#endif
