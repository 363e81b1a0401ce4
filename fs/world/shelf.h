/* The shelf: the last layouts of a node, also those of earlier worlds. They are files STATE/layout-DIGEST, which the
 * next server can use, or in memory if that cannot be written. Any thread. */
#ifndef FS_WORLD_SHELF_H
#define FS_WORLD_SHELF_H

#include "fs/world/layout.h"

enum { LAYOUTS_KEPT = 16 };

struct shelf;

int shelf_create(const char *state, struct shelf **shelf); /* `state` is borrowed */
void shelf_destroy(struct shelf *shelf);

/* Always keeps the layout. 0, or why it could not be saved. */
int shelf_keep(struct shelf *shelf, struct layout *layout);
/* A reference. -ENOENT: not on the shelf; -EBADMSG: the file is damaged, or another layout. */
int shelf_find(struct shelf *shelf, const struct catalog *catalog, const struct digest *digest, struct layout **layout);
/* Other nodes name a layout by the first half of its digest. */
uint64_t shelf_key(const struct digest *digest);
int shelf_find_key(struct shelf *shelf, const struct catalog *catalog, uint64_t key, struct layout **layout);

#endif
