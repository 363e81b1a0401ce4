/* What this node holds, extent by extent. These are walks over all of them, by the conversation's thread; they end
 * early with -ECONNRESET when that is over. */
#ifndef FS_WORLD_HOLDINGS_H
#define FS_WORLD_HOLDINGS_H

#include "fs/world/talk.h"

uint64_t holdings_capacity(const struct self *self); /* the bytes of its tiers */
/* All that is held, and a bit for each extent of which any byte is. */
int holdings_look(const struct talk *t, uint64_t *bits, struct holding *holding);
/* A tier that the server before this one still has open is not known yet. */
void holdings_wait(const struct talk *t);
/* The cost that still has room when all is here that this node owns. */
int holdings_room(const struct talk *t, const struct world *w, uint64_t *room);
/* What is held and another node's is given up: always, and its room is here when this returns; or where it is
 * needed. */
void holdings_trim(const struct talk *t, const struct world *w, bool always);

#endif
