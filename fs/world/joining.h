/* Frames of the courier while a world forms, and when it resumes with a restarted server. */
#ifndef FS_WORLD_JOINING_H
#define FS_WORLD_JOINING_H

#include "fs/world/talk.h"

/* Answer a frame: 0; an error ends the conversation. Takes the descriptors that it uses out of the frame. */
int joining_answer(struct talk *t, struct talk_frame *frame);

#endif
