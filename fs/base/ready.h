/* Waiting for descriptors. Nothing else calls poll. */
#ifndef FS_BASE_READY_H
#define FS_BASE_READY_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

/* The number of ready descriptors; 0: the time is over; -1: a signal came. Without a ready one, no revents are set.
 * milliseconds < 0: for any time.
 *
 * Any other error (more descriptors than the limit of open files, no memory) would make each wait vain: it is logged,
 * and the process ends. */
int ready_wait(struct pollfd *fd, size_t n, int milliseconds);
/* Now: has it one of these events, or an error, or has the other end been closed? */
bool ready_now(int fd, short events);

#endif
