/* What the courier asks while a world forms, and of the server that follows one that has died. */
#ifndef FS_WORLD_JOINING_H
#define FS_WORLD_JOINING_H

#include "fs/world/talk.h"

/* Answer a frame: 0; an error ends the conversation. Descriptors that are used are taken out of it. */
int joining_answer(struct talk *t, struct talk_frame *frame);

#endif
