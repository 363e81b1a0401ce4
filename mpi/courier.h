/* A courier in one world: it forms the world with the others, then serves its node's server until the world ends. The
 * caller runs MPI_Init and MPI_Finalize. */
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
    int last_tag; /* the largest that MPI accepts */
    int signals;
};

enum { COURIER_TAG = 32767 }; /* the minimum that MPI guarantees */

int courier_form(struct courier *courier);  /* 0; else the error was reported. The helper has ended afterwards */
int courier_serve(struct courier *courier); /* returns when the world ends; 0: in order */
/* Call it once, even if the world did not form. Memory that MPI still uses stays until the process ends. */
void courier_end(struct courier *courier, int error);
/* Did the world end on all nodes? Only then may MPI be finalized. */
static inline bool courier_in_order(int error)
{
    return error == 0 || error == -ECANCELED;
}

#endif
