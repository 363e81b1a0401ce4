/* A world that this node is or was in: its layout, and who this node is in it. Immutable except for the count. */
#ifndef FS_WORLD_WORLD_H
#define FS_WORLD_WORLD_H

#include "fs/wire/turn.h"
#include "fs/world/shelf.h"

#include <stdatomic.h>

struct world {
    _Atomic uint32_t refs;
    uint8_t uuid[16];
    uint32_t nodes, me, group; /* group: of this node */
    struct layout *layout;
    struct layout *before;   /* the one that the last turn has replaced; NULL: none, or it is not known here */
    struct layout *earlier;  /* the one before that; likewise */
    struct turn_record last; /* the last turn; k = 0: it has not turned yet */
};

/* How this node stands to a world: see membership.h. */
enum world_state { WORLD_ALONE, WORLD_JOINED, WORLD_DEGRADED };
extern const char *const world_state_names[]; /* "alone", "joined", "degraded" */

/* Takes the layout over, also when it fails: -EINVAL: `me` is not in it. */
int world_create(const uint8_t uuid[16], uint32_t me, struct layout *layout, struct world **world);
/* The same world with the layout that this turn has led to. Takes the layout over, also when it fails: -EBADMSG: it is
 * of other nodes or groups, or not that one. */
int world_turn(const struct world *before, struct layout *layout, const struct turn_record *turn, struct world **after);
/* A world that was created with its layout of now has come there by this turn. Takes over the layouts that it had
 * before, NULL where they are not known. -EBADMSG: they are not of this world. */
int world_recall(struct world *world, const struct turn_record *turn, struct layout *before, struct layout *earlier);
struct world *world_get(struct world *world); /* one more reference; NULL is NULL */
void world_put(struct world *world);

static inline bool world_keeps(const struct world *w, uint64_t extent)
{
    return layout_owner(w->layout, w->group, extent) == w->me;
}

/* For the servers after this one: STATE/world has the last turn, and names layouts of the shelf. */
int world_save(const char *state, const struct world *world);
/* -ENOENT: there was none; -ENODATA: its layout is missing. */
int world_load(const char *state, struct shelf *shelf, const struct catalog *catalog, struct world **world);
void world_forget(const char *state); /* the layouts are kept */

#endif
