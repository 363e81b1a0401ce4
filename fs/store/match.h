/* Finds files of the current catalog by their versions (catalog_file_version), for shards that were filled under
 * another catalog. */
#ifndef FS_STORE_MATCH_H
#define FS_STORE_MATCH_H

#include "fs/catalog/catalog.h"

struct match;
int match_create(const struct catalog *c, struct match **match);
void match_destroy(struct match *match);
bool match_find(const struct match *match, const struct digest *identity, uint32_t *file);

#endif
