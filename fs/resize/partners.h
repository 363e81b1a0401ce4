/* The other nodes that resize the same source, through the courier: their records and parts. fs/wire/resizing.h has the
 * protocol. */
#ifndef FS_RESIZE_PARTNERS_H
#define FS_RESIZE_PARTNERS_H

#include "fs/catalog/derived.h"
#include "fs/wire/resizing.h"

/* `courier`: descriptor of its socket. 0; -ECONNRESET: it has hung up; -EBADMSG, -errno. */

/* Afterwards `derived` has the records of all nodes. Returns which of the other files are this node's part. */
int partners_begin(int courier, struct derived *derived, uint64_t room, struct resizing_part *part);
int partners_tell(int courier, const struct resizing_progress *now, bool made);
bool partners_left(int courier); /* the courier has hung up */
/* Sends the records of the n files that were made here, and takes over those of all nodes. */
int partners_end(int courier, struct derived *derived, const uint32_t *file, uint32_t n);
void partners_fail(int courier, const char *why);

#endif
