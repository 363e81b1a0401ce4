/* MPI requests in flight, of any number: each is started here, and `done` is called once when it has ended. Nothing
 * here waits. A buffer belongs to MPI from the start until `done`. */
#ifndef MPI_POST_H
#define MPI_POST_H

#include <stddef.h>
#include <stdint.h>

struct post;

enum { POST_ANY = -1 };

/* status: 0, or -EMSGSIZE: what came was longer than the buffer. */
typedef void post_done(void *user, int status, uint32_t from, size_t n);

int post_create(struct post **post);
/* MPI is asked to let go of what has not ended; the rest is abandoned with it. `done` is not called. */
void post_destroy(struct post *post);

/* 0, -ENOMEM; -EIO: MPI fails, and has been reported: the world is over. */
int post_receive(struct post *post, void *bytes, size_t n, int from, int tag, post_done *done, void *user);
int post_send(struct post *post, const void *bytes, size_t n, uint32_t to, int tag, post_done *done, void *user);
/* How many have ended, after their `done`; or -EIO. */
int post_progress(struct post *post);
/* The same, of those that have ended already: MPI does nothing. To be called after post_progress has found none, which
 * does not see what it has ended itself. */
int post_look(struct post *post);

unsigned post_sends(const struct post *post); /* in flight */

#endif
