/* A world that this node is or was in: its layout, and this node's number in it. Immutable except for the reference
 * count. */
#ifndef FS_WORLD_WORLD_H
#define FS_WORLD_WORLD_H

#include "fs/wire/turn.h"
#include "fs/world/shelf.h"

#include <stdatomic.h>

struct world {
    _Atomic uint32_t refs;
    uint8_t uuid[16];
    uint32_t nodes, me, group; /* group: this node's */
    struct layout *layout;
    struct layout *before;   /* the layout before the last turn; NULL: none or unknown */
    struct layout *earlier;  /* the layout before that; likewise */
    struct turn_record last; /* k = 0: it has not turned yet */
};

/* Relation of this node to a world: see membership.h. */
enum world_state { WORLD_ALONE, WORLD_JOINED, WORLD_DEGRADED };
extern const char *const world_state_names[]; /* "alone", "joined", "degraded" */

/* Owns the layout, also on failure. -EINVAL: `me` is not in it. */
int world_create(const uint8_t uuid[16], uint32_t me, struct layout *layout, struct world **world);
/* The same world with the layout that this turn led to. Owns the layout, also on failure. -EBADMSG: it has other nodes
 * or groups, or another digest. */
int world_turn(const struct world *before, struct layout *layout, const struct turn_record *turn, struct world **after);
/* Set the last turn of a world that was created with its current layout, and its earlier layouts; NULL: unknown. Owns
 * them. -EBADMSG: they are not of this world. */
int world_recall(struct world *world, const struct turn_record *turn, struct layout *before, struct layout *earlier);
struct world *world_get(struct world *world); /* adds a reference; NULL stays NULL */
void world_put(struct world *world);
static inline void cleanup_world_(struct world **world)
{
    world_put(*world);
}
#define CLEANUP_WORLD __attribute__((cleanup(cleanup_world_)))

static inline bool world_keeps(const struct world *w, uint64_t extent)
{
    return layout_owner(w->layout, w->group, extent) == w->me;
}

/* For later servers: STATE/world has the last turn, and names layouts on the shelf. */
int world_save(const char *state, const struct world *world);
/* -ENOENT: there was none; -ENODATA: its layout is missing. */
int world_load(const char *state, struct shelf *shelf, const struct catalog *catalog, struct world **world);
void world_forget(const char *state); /* the layouts are kept */

#endif
