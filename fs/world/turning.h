/* The server's part in a turn: it reports whether it is ready, computes the next layout, and takes it when all nodes
 * do. Before that nothing changes. The layout is saved afterwards, and is in force even if saving fails. */
#ifndef FS_WORLD_TURNING_H
#define FS_WORLD_TURNING_H

#include "fs/world/talk.h"

/* Answer a frame: 0; an error ends the conversation. */
int turning_answer(struct talk *t, const struct talk_frame *frame);
/* This world follows the node's previous one and is in force. Extents that got their first owner are staged. */
void turning_follow(struct talk *t, const struct world *world);
#endif
