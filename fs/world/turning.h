/* The server's part in a turn: it says whether it is ready, computes the next layout, and takes it when all nodes do.
 * Until then nothing changes here. It is saved afterwards, and in force also where that fails. */
#ifndef FS_WORLD_TURNING_H
#define FS_WORLD_TURNING_H

#include "fs/world/talk.h"

/* Answer a frame: 0; an error ends the conversation. */
int turning_answer(struct talk *t, const struct talk_frame *frame);
/* This world, which follows the one that this node was in, is in force: what got its first owner is staged. */
void turning_follow(struct talk *t, const struct world *world);
#endif
