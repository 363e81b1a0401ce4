/* MPI requests in progress, of any number. Each is started here; `done` is called once when it has ended. Nothing here
 * waits. A buffer belongs to MPI from the start until `done`. */
#ifndef MPI_POST_H
#define MPI_POST_H

#include <stddef.h>
#include <stdint.h>

struct posts;

enum { POST_ANY = -1 };

/* status: 0, or -EMSGSIZE: the message was longer than the buffer. */
typedef void post_done(void *user, int status, uint32_t from, size_t n);

int post_create(struct posts **post);
/* MPI cancels requests that have not ended if it can; the others are abandoned. `done` is not called. */
void post_destroy(struct posts *post);

/* 0, -ENOMEM; -EIO: MPI failed, and it was reported: the world is over. */
int post_receive(struct posts *post, void *bytes, size_t n, int from, int tag, post_done *done, void *user);
int post_send(struct posts *post, const void *bytes, size_t n, uint32_t to, int tag, post_done *done, void *user);
/* Number of requests that have ended, after their `done`; or -EIO. */
int post_progress(struct posts *post);
/* The same for requests that have already ended, without progress by MPI. Call it when post_progress has found none: it
 * does not report what ended during its own call. */
int post_look(struct posts *post);

/* Reports the error of an MPI call; returns -EIO. */
int post_failed(const char *what, int code);

unsigned post_sends(const struct posts *post); /* in progress */

#endif
