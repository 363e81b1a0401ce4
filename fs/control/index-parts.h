/* Containers that this node owns and parses because another node asks for their records.
 *
 * The question is the key of a blob (list-sharing.h): a mark, the container's file, its format, and whether the records
 * are text. The first question starts the parsing; until it is done, the answer is INDEX_RUNS. Results are kept in
 * files without names until they were fetched, or nobody asked for a minute. */
#ifndef FS_CONTROL_INDEX_PARTS_H
#define FS_CONTROL_INDEX_PARTS_H

#include "fs/wire/indexing.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct control;
struct index_parts;
struct blob_question;

int index_parts_create(struct control *control, struct index_parts **parts);
void index_parts_destroy(struct index_parts *parts);

/* `format`: its position in INDEX_FORMATS; 0: detect it. */
#define INDEX_FORMATS "any|tar|tfrecord|lines"
uint64_t index_key(uint32_t file, unsigned format, bool text);
bool index_key_is(uint64_t key);
/* Copy bytes from `offset` on into `to`; returns how many. `length`: of the whole. -ENOENT: there is no such container,
 * or this piece of the result is gone. Never waits for the container. */
ssize_t index_parts_bytes(struct index_parts *parts, const struct blob_question *question, void *to, size_t room,
                          uint64_t *length);

#endif
