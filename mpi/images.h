/* Images made smaller by all nodes, each its part, before there is a catalog: the couriers' end of
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
/* The other end, for the resizer's parent, to be closed by the caller; -errno. */
int images_open(struct images *images);
/* Until it has said what it knows, in `mine`. 0; else -EIO and why. */
int images_hear(struct images *images, struct str *why);
/* All nodes, once all have heard theirs: each makes its part, and all know everything. 0, or it has been reported. */
int images_together(struct images *images);
/* After that, on a node whose mount was there already: its resizer has written all of it. */
void images_await(struct images *images);
/* One that is not done is ended, and so is a mount that waits for it. */
void images_end(struct images *images);

#endif
