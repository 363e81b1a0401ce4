/* The other nodes that resize the same source, by way of the courier: what each knows and makes. The conversation
 * stands in fs/wire/resizing.h. */
#ifndef FS_RESIZE_PARTNERS_H
#define FS_RESIZE_PARTNERS_H

#include "fs/base/str.h"
#include "fs/catalog/derived.h"
#include "fs/wire/resizing.h"

/* By descriptor of the courier's socket. 0; -ECONNRESET: the courier has gone; -EBADMSG, -errno. */

/* `derived` knows what all nodes know, afterwards. Returns which of the other files are this node's. */
int partners_begin(int courier, struct derived *derived, uint64_t room, struct resizing_part *part);
int partners_tell(int courier, const struct resizing_progress *now, bool made);
bool partners_left(int courier); /* the courier has gone */
/* The records of the n files that were made here are told, and those of all nodes known afterwards. */
int partners_end(int courier, struct derived *derived, const uint32_t *file, uint32_t n);
void partners_fail(int courier, const char *why);

#endif
