/* A courier in one world: it forms the world with the others, and then serves its node's server until the world ends.
 * What MPI_Init and MPI_Finalize are to do is the caller's. */
#ifndef MPI_COURIER_H
#define MPI_COURIER_H

#include "mpi/flight.h"
#include "mpi/forming.h"

#include <errno.h>

struct courier {
    struct arguments arguments;
    struct spoil spoil;
    struct courier_helper helper;
    struct nodes nodes;
    struct home home;
    struct members members;
    struct doorbell *doorbell;
    struct posts *post;
    struct flight *flight;
    int last_tag; /* the largest that MPI takes */
    int signals;
};

enum { COURIER_TAG = 32767 }; /* MPI promises as many */

int courier_form(struct courier *courier);  /* 0; else it has been reported. The helper has ended then */
int courier_serve(struct courier *courier); /* returns when the world ends: 0 in order */
/* Call it once, also when the world did not form. What MPI has not let go of stays as it is until the process ends. */
void courier_end(struct courier *courier, int error);
/* Has it ended as all others do? Only then may MPI be finalized. */
static inline bool courier_in_order(int error)
{
    return error == 0 || error == -ECANCELED;
}

#endif
