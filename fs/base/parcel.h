/* Messages over a Unix socket, with descriptors. */
#ifndef FS_BASE_PARCEL_H
#define FS_BASE_PARCEL_H

#include <stddef.h>
#include <sys/types.h>

struct ucred;
enum { PARCEL_MOST = 8 /* descriptors per message */ };

/* One sendmsg, with `fds` up to the first -1, at most `most` (NULL: none). Returns the number of bytes, or -errno. */
ssize_t parcel_send(int socket, const void *bytes, size_t n, const int *fds, size_t most, int flags);
/* One recvmsg. Descriptors replace those elements of `fds` that are -1. -EBADMSG: more were sent; `fds` has the first
 * ones, and the kernel drops the others. `from`: NULL, or the sender on a socket with SO_PASSCRED. Returns the number
 * of bytes, 0 when the other end has hung up, or -errno. */
ssize_t parcel_receive(int socket, void *to, size_t n, int *fds, size_t most, struct ucred *from);

#endif
