/* Resizes images on all nodes, each node its part, before there is a catalog: the couriers' end of
 * fs/wire/resizing.h. */
#ifndef MPI_IMAGES_H
#define MPI_IMAGES_H

#include "fs/wire/resizing.h"
#include "mpi/helper.h"
#include "mpi/members.h"

struct images {
    const struct members *members;
    struct courier_helper *helper;
    int socket; /* to this node's resizer; -1: none */
    struct resizing_knows mine;
};

void images_init(struct images *images, const struct members *members, struct courier_helper *helper);
/* Returns the other end, for the resizer's parent, to be closed by the caller; or -errno. */
int images_open(struct images *images);
/* Wait until the resizer has sent what it knows, into `mine`. 0; else -EIO and why. */
int images_hear(struct images *images, struct str *why);
/* All nodes call it after images_hear: each makes its part, and gets the records of all. 0, or the error was
 * reported. */
int images_together(struct images *images);
/* Afterwards, if this node's mount existed already: wait until its resizer has written everything. */
void images_await(struct images *images);
/* Ends a resizer that is not done, and so a mount that waits for it. */
void images_end(struct images *images);

#endif
