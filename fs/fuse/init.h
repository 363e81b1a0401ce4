/* The INIT handshake of a FUSE connection, recorded so that it happens once however many servers there are. */
#ifndef FS_FUSE_INIT_H
#define FS_FUSE_INIT_H

#include "fs/fuse/slots.h"

#include <sys/uio.h>

/* Remember the request; nothing happens when one is remembered already. -EMSGSIZE: too long to be an INIT. */
int init_record_request(struct init_record *record, const void *request, size_t n);

/* What libfuse replied becomes what the kernel is told: parallel lookups, READs of up to 1 MiB although writes are as
 * small as the slots, and is remembered. A reply that is remembered already stays. -EPROTO: libfuse refused. */
int init_record_reply(struct init_record *record, const struct iovec *iov, int count, uint32_t room);

#endif
