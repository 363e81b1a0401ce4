/* What is known of a stored segment's file: where each of its values lies, and a way to the bytes past RocksDB. A seek
 * in RocksDB costs a third of the processor time of a small read from memory, and a read through it copies; a look here
 * costs nothing to speak of, and what is read lands where the answer points.
 *
 * RocksDB tells where a value goes when it is written; the segment's index record keeps that for the next opening.
 * Eight bytes a value. What is found here has not been checked by anybody. */
#ifndef FS_STORE_KNOWN_H
#define FS_STORE_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KNOWN_ALIGN = 4096 }; /* of direct reads: in the file and in memory */

struct known;

struct known *known_create(void); /* NULL: no memory */
void known_destroy(struct known *k);

/* Until the segment is in the table, by one thread. A value of which nothing is noted is asked of RocksDB. */
int known_note(struct known *k, uint32_t place, uint64_t at, size_t n); /* `at` 0: not known */
int known_map(struct known *k, int fd, uint64_t bytes); /* the file's bytes are memory; `fd` is not kept */
void known_take(struct known *k, int fd);               /* they are read; k closes it */

/* After that, by any thread that has a pin on the segment. */
bool known_find(const struct known *k, uint32_t place, uint64_t *at, size_t *n);
const void *known_bytes(const struct known *k, uint64_t at); /* NULL: to be read */
/* Read the file's bytes from…to; returns where the first of them is in `buffer`, which is aligned and has room for
 * KNOWN_ALIGN bytes more at either end. NULL: `error` says why; -EIO also where the file is too short. */
const char *known_read(const struct known *k, uint64_t from, uint64_t to, char *buffer, int *error);

#endif
