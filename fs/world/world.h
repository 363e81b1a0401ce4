/* A world that this node is or was in: its directory, and who this node is in it. Immutable but for the count. */
#ifndef FS_WORLD_WORLD_H
#define FS_WORLD_WORLD_H

#include "fs/world/directory.h"

#include <stdatomic.h>

struct world {
    _Atomic uint32_t refs;
    uint8_t uuid[16];
    uint32_t nodes, me, groups, group; /* group: of this node */
    struct directory *directory;
    uint64_t *owned; /* bytes, by number */
};

/* Takes the directory over, also when it fails: -EINVAL: `me` is not in it. */
int world_create(const uint8_t uuid[16], uint32_t me, struct directory *directory, struct world **world);
struct world *world_get(struct world *world); /* one more reference; NULL is NULL */
void world_put(struct world *world);

/* Is it of the same nodes and groups? */
bool world_is_like(const struct world *w, const struct directory *directory);

static inline bool world_keeps(const struct world *w, uint64_t extent)
{
    return directory_owner(w->directory, w->group, extent) == w->me;
}

/* For the servers after this one: STATE/world names the directory beside it, STATE/directory-DIGEST. */
int world_save_directory(const char *state,
                         const struct directory *directory); /* the last KEPT are kept, the last world's too */
int world_open_directory(const char *state, const struct catalog *catalog, const struct digest *digest,
                         struct directory **directory); /* -ENOENT; -EBADMSG: damaged, or another one */
int world_save(const char *state, const struct world *world);
/* -ENOENT: there was none; -ENODATA: its directory is missing. */
int world_load(const char *state, const struct catalog *catalog, struct world **world);
void world_forget(const char *state); /* the directories are kept */

#endif
