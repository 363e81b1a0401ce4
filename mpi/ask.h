/* What a courier asks its node's server while the world forms: each function says something and waits for the answer.
 * All return 0, or -errno and why. */
#ifndef MPI_ASK_H
#define MPI_ASK_H

#include "mpi/home.h"

/* Connect, for some seconds if there is nobody, and HELLO: `welcome` is set. */
int ask_hello(struct home *home, struct str *why);
/* A server that waits for a catalog and is to resize: this node's part of what the source's catalog at `path` has, over
 * `courier` (resizing.h). */
int ask_resize(struct home *home, const char *path, int courier, struct str *why);
/* A server that waits for a catalog takes this one; `welcome` is new. */
int ask_take_catalog(struct home *home, const char *path, struct str *why);
/* The bitmap has (extents + 63) / 64 words, malloc'd. */
int ask_holdings(struct home *home, struct holding *holding, uint64_t **words, struct str *why);

/* A world, as its servers are told. */
struct ask_world {
    uint32_t me, nodes, groups;
    const struct message_member *member; /* by number */
    const uint16_t *holder;              /* as in struct layout_input */
};
/* Makes the ring. `layout` is what the server computed. */
int ask_layout(struct home *home, const struct ask_world *world, struct str *why);
int ask_live(struct home *home, struct str *why);

#endif
