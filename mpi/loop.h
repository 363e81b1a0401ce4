/* The courier's main loop: one thread that sleeps until the server, a peer or a signal wakes it. */
#ifndef MPI_LOOP_H
#define MPI_LOOP_H

#include "mpi/doorbell.h"
#include "mpi/flight.h"
#include "mpi/home.h"
#include "mpi/post.h"

struct loop {
    struct home *home;
    struct posts *post;
    struct doorbell *doorbell;
    struct flight *flight;
    int signals; /* from signals_open */
};

/* Runs until the world ends. 0: in order, all others end too; -EINTR: by a signal that the others did not learn of in
 * time; other -errno: MPI or memory failed, and it was reported. */
int loop_run(struct loop *loop);

#endif
