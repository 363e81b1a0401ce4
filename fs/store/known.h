/* Where the values of a stored segment lie in its mapped file: asked of RocksDB once, remembered after. A seek costs a
 * third of the processor time of a small read; a look here nothing to speak of.
 *
 * Only for the RAM tier, whose bytes stay where they are until the segment is dropped. Eight bytes a value, and touched
 * only for those that were read. What is found here has not been checked by anybody. */
#ifndef FS_STORE_KNOWN_H
#define FS_STORE_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct known;
struct segment;

/* By whoever has a pin on the segment; any thread. */
bool known_find(const struct segment *s, uint32_t place, const void **bytes, size_t *n);
void known_add(struct segment *s, uint32_t place, const void *bytes, size_t n); /* or not, for want of memory */
/* By whoever has the segment alone. */
void known_forget(struct segment *s);

#endif
