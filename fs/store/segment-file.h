/* The file of a stored segment: where its values are, and their bytes. RocksDB writes, lists and removes the file, but
 * values are not read through RocksDB: a seek there costs a third of a small read's processor time, and a read copies.
 * The segment's index record says where values begin. The bytes there are unchecked. Readers
 * may note which values they have verified.
 *
 * A file is mapped, or it is read: with a descriptor that stays open or, to save descriptors, with one per read. */
#ifndef FS_STORE_SEGMENT_FILE_H
#define FS_STORE_SEGMENT_FILE_H

#include "fs/store/index.h"
#include "fs/store/rocks.h"

enum { SEGMENT_FILE_ALIGN = ROCKS_ALIGN };

struct segment_file;

/* Open a file; values cannot be found yet. -EBADMSG: it is shorter than RocksDB says. */
int segment_file_open(struct rocks *rocks, const struct rocks_file *which, bool mapped, struct segment_file **file);
void segment_file_close(struct segment_file *f);
int segment_file_index(const struct segment_file *f, struct index *index); /* -EBADMSG: there is no valid one */
/* Learn where the values are; before other threads read. 0 or -ENOMEM. */
int segment_file_learn(struct segment_file *f, const struct index *index);

const struct rocks_file *segment_file_which(const struct segment_file *f);

/* For threads with a pin on the segment: */
/* Make descriptors of the file and of its spots, for the courier (fs/wire/tier-share.h). Only of a mapped file. */
struct message_segment;
int segment_file_share(const struct segment_file *f, struct message_segment *message, int fd[2]);
bool segment_file_find(const struct segment_file *f, uint32_t place, uint64_t *at, size_t *n);
bool segment_file_verified(const struct segment_file *f, uint32_t place); /* by segment_file_set_verified */
void segment_file_set_verified(struct segment_file *f, uint32_t place);
const char *segment_file_bytes(const struct segment_file *f, uint64_t at); /* NULL: not mapped */
/* Like rocks_read. */
const char *segment_file_read(const struct segment_file *f, uint64_t from, uint64_t to, char *buffer, int *error);

#endif
