/* A stored segment's file: where each of its values lies, and their bytes. RocksDB wrote the file, keeps it and removes
 * it, but is not asked for a value: a seek in it costs a third of the processor time of a small read from memory, and a
 * read through it copies. The segment's index record tells where each value begins; what lies there has been checked by
 * nobody.
 *
 * The file is mapped, or it is read: by a descriptor that is kept, or where descriptors must be left for others, by one
 * that is opened for each read. */
#ifndef FS_STORE_SEGMENT_FILE_H
#define FS_STORE_SEGMENT_FILE_H

#include "fs/store/index.h"
#include "fs/store/rocks.h"

enum { SEGMENT_FILE_ALIGN = ROCKS_ALIGN };

struct segment_file;

/* A file whose values nobody can find yet. -EBADMSG: it is shorter than RocksDB knows. */
int segment_file_open(struct rocks *rocks, const struct rocks_file *which, bool mapped, struct segment_file **file);
void segment_file_close(struct segment_file *f);
int segment_file_index(const struct segment_file *f, struct index *index); /* -EBADMSG: there is no good one */
/* Where the values lie, before others read: 0 or -ENOMEM. */
int segment_file_learn(struct segment_file *f, const struct index *index);

const struct rocks_file *segment_file_which(const struct segment_file *f);

/* Any thread that has a pin on the segment: */
bool segment_file_find(const struct segment_file *f, uint32_t place, uint64_t *at, size_t *n);
const char *segment_file_bytes(const struct segment_file *f, uint64_t at); /* NULL: to be read */
/* As rocks_read. */
const char *segment_file_read(const struct segment_file *f, uint64_t from, uint64_t to, char *buffer, int *error);

#endif
