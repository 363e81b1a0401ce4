/* The last layouts of a node, those of earlier worlds too: as STATE/layout-DIGEST for the servers after this one, and
 * in memory where that cannot be written. Any thread. */
#ifndef FS_WORLD_SHELF_H
#define FS_WORLD_SHELF_H

#include "fs/world/layout.h"

enum { LAYOUTS_KEPT = 16 };

struct shelf;

int shelf_create(const char *state, struct shelf **shelf); /* `state` is borrowed */
void shelf_destroy(struct shelf *shelf);

/* Keeps it in any case. 0; or why it could not be saved. */
int shelf_keep(struct shelf *shelf, struct layout *layout);
/* A reference. -ENOENT: it is not here; -EBADMSG: its file is damaged, or is another one. */
int shelf_find(struct shelf *shelf, const struct catalog *catalog, const struct digest *digest, struct layout **layout);
/* For other nodes, who name a layout by the first half of its digest. */
uint64_t shelf_key(const struct digest *digest);
int shelf_find_key(struct shelf *shelf, const struct catalog *catalog, uint64_t key, struct layout **layout);

#endif
