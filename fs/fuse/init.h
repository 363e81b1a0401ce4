/* The INIT handshake of a FUSE connection. It is recorded, so that it happens once, however many servers there are. */
#ifndef FS_FUSE_INIT_H
#define FS_FUSE_INIT_H

#include "fs/fuse/slots.h"

#include <sys/uio.h>

/* Record the request, unless one is recorded already. -EMSGSIZE: too long for an INIT. */
int init_record_request(struct init_record *record, const void *request, size_t n);

/* Correct libfuse's reply for the kernel, and record it, unless one is recorded already: parallel lookups, and READs of
 * up to 1 MiB although writes are as small as the slots. -EPROTO: libfuse failed. */
int init_record_reply(struct init_record *record, const struct iovec *iov, int count, uint32_t room);

#endif
