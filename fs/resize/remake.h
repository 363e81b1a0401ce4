/* A layer over the source of a mount with resize=: its files have the bytes of the derived catalog. What a tier has
 * lost, or never had room for, is made again from the original, and compared with its hash. */
#ifndef FS_RESIZE_REMAKE_H
#define FS_RESIZE_REMAKE_H

#include "fs/catalog/derived.h"
#include "fs/store/layer.h"

#include <stdatomic.h>

/* `program`: see crew.h. `below` reads the originals; the layer owns it. `counts` may be NULL. */
int remake_create(const struct derived *derived, const char *program, struct derived_counts *counts,
                  struct layer *below, struct layer **layer);

#endif
