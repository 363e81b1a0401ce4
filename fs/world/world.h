/* A world that this node is or was in: its layout, and who this node is in it. Immutable but for the count. */
#ifndef FS_WORLD_WORLD_H
#define FS_WORLD_WORLD_H

#include "fs/wire/turn.h"
#include "fs/world/layout.h"

#include <stdatomic.h>

struct world {
    _Atomic uint32_t refs;
    uint8_t uuid[16];
    uint32_t nodes, me, group; /* group: of this node */
    struct layout *layout;
    struct layout *before; /* the one that the last turn has replaced; NULL: it has not turned yet */
    uint64_t k;            /* of the last turn */
    struct turn_history history;
};

/* How this node stands to a world: see membership.h. */
enum world_state { WORLD_ALONE, WORLD_JOINED, WORLD_DEGRADED };
extern const char *const world_state_names[]; /* "alone", "joined", "degraded" */

/* Takes the layout over, also when it fails: -EINVAL: `me` is not in it. */
int world_create(const uint8_t uuid[16], uint32_t me, struct layout *layout, struct world **world);
/* The same world with the layout that its last turn has led to, and all its turns. Takes the layout over, also when it
 * fails: -EBADMSG: it is of other nodes or groups, or not that one. */
int world_turn(const struct world *before, struct layout *layout, const struct turn_history *history,
               struct world **after);
struct world *world_get(struct world *world); /* one more reference; NULL is NULL */
void world_put(struct world *world);

static inline bool world_keeps(const struct world *w, uint64_t extent)
{
    return layout_owner(w->layout, w->group, extent) == w->me;
}

/* For the servers after this one: STATE/world has the turns, and names the layouts beside it, STATE/layout-DIGEST. Of
 * these the last few are kept, those of the last world too. */
int world_save_layout(const char *state, const struct layout *layout);
int world_open_layout(const char *state, const struct catalog *catalog, const struct digest *digest,
                      struct layout **layout); /* -ENOENT; -EBADMSG: damaged, or another one */
int world_save(const char *state, const struct world *world);
/* -ENOENT: there was none; -ENODATA: its layout is missing. */
int world_load(const char *state, const struct catalog *catalog, struct world **world);
void world_forget(const char *state); /* the layouts are kept */

#endif
