/* MPI requests in flight, of any number: each is started here, and `done` is called once when it has ended. Nothing
 * here waits. A buffer belongs to MPI from the start until `done`. */
#ifndef MPI_POST_H
#define MPI_POST_H

#include <stddef.h>
#include <stdint.h>

struct posts;

enum { POST_ANY = -1 };

/* status: 0, or -EMSGSIZE: what came was longer than the buffer. */
typedef void post_done(void *user, int status, uint32_t from, size_t n);

int post_create(struct posts **post);
/* MPI is asked to let go of what has not ended; the rest is abandoned with it. `done` is not called. */
void post_destroy(struct posts *post);

/* 0, -ENOMEM; -EIO: MPI fails, and has been reported: the world is over. */
int post_receive(struct posts *post, void *bytes, size_t n, int from, int tag, post_done *done, void *user);
int post_send(struct posts *post, const void *bytes, size_t n, uint32_t to, int tag, post_done *done, void *user);
/* How many have ended, after their `done`; or -EIO. */
int post_progress(struct posts *post);
/* The same, of those that have ended already: MPI does nothing. To be called after post_progress has found none, which
 * does not see what it has ended itself. */
int post_look(struct posts *post);

/* Says what MPI says of a call of it; -EIO. */
int post_failed(const char *what, int code);

unsigned post_sends(const struct posts *post); /* in flight */

#endif
