/* Dealing again in a living world: when the shards have been filled and compression made room, what has no owner yet is
 * given away, and the new layout takes the place of the one before. Owners never change by this, so that the two may
 * live side by side for the moment that it takes all nodes to turn. */
#ifndef FS_WORLD_REDEAL_H
#define FS_WORLD_REDEAL_H

#include "fs/world/talk.h"

/* Answer a frame: 0; an error ends the conversation. */
int redeal_answer(struct talk *t, const struct talk_frame *frame);

#endif
