/* What this node holds, extent by extent. These are walks over all of them, by the conversation's thread; they end
 * early with -ECONNRESET when that is over. */
#ifndef FS_WORLD_HOLDINGS_H
#define FS_WORLD_HOLDINGS_H

#include "fs/world/talk.h"

uint64_t holdings_capacity(const struct self *self); /* the bytes of its tiers */
/* All that is held, and the claims to it (fs/wire/node.h), zeros at first. `last`: the world before, or NULL. */
int holdings_look(const struct talk *t, const struct world *last, uint64_t *claims, struct holding *holding);
/* A tier that the server before this one still has open is not known yet. */
void holdings_wait(const struct talk *t);
/* The cost that still has room when all is here that this node owns. */
int holdings_room(const struct talk *t, const struct world *w, uint64_t *room);
/* At a join: what is held and another node was chosen for is given up, where its room is needed. */
void holdings_trim(const struct talk *t, const struct world *w);

#endif
