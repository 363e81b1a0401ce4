/* What this node has cached, per extent. These functions walk over all extents on the conversation's thread. They end
 * early with -ECONNRESET when the conversation ends. */
#ifndef FS_WORLD_HOLDINGS_H
#define FS_WORLD_HOLDINGS_H

#include "fs/world/talk.h"

uint64_t holdings_capacity(const struct self *self); /* bytes of all tiers */
/* Look at all cached data, and fill in the claims to extents (fs/wire/node.h; zeros at first). `last`: the previous
 * world, or NULL. */
int holdings_look(const struct talk *t, const struct world *last, uint64_t *claims, struct holding *holding);
/* Wait until the previous server has let go of the tiers. */
void holdings_wait(const struct talk *t);
/* Room that is left, as cost, once this node has cached all that it owns. */
int holdings_room(const struct talk *t, const struct world *w, uint64_t *room);
/* At a join: drop cached extents of other owners if their room is needed. */
void holdings_trim(const struct talk *t, const struct world *w);

#endif
