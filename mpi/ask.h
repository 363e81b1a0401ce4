/* Questions of a courier to its node's server while the world forms. Each function sends one and waits for the answer.
 * All return 0, or -errno and why. */
#ifndef MPI_ASK_H
#define MPI_ASK_H

#include "mpi/home.h"

/* Connect, retrying for some seconds, and send HELLO: sets `welcome`. */
int ask_hello(struct home *home, struct str *why);
/* For a server that waits for a catalog with `resize`: the source's catalog is at `path`; this node's part of its
 * images is resized, over `courier` (resizing.h). */
int ask_resize(struct home *home, const char *path, int courier, struct str *why);
/* Give this catalog to a server that waits for one; `welcome` is updated. */
int ask_take_catalog(struct home *home, const char *path, struct str *why);
/* The bitmap has (extents + 63) / 64 words, malloc'd. */
int ask_holdings(struct home *home, struct holding *holding, uint64_t **words, struct str *why);

/* A world, as its servers learn of it. */
struct ask_world {
    uint32_t me, nodes, groups;
    const struct message_member *member; /* by node number */
    const uint16_t *holder;              /* as in struct layout_input */
};
/* Creates the ring. `layout`: the one that the server computed. */
int ask_layout(struct home *home, const struct ask_world *world, struct str *why);
int ask_live(struct home *home, struct str *why);

#endif
