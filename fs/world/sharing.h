/* Sharing the RAM tier with the courier: fs/wire/tier-share.h. */
#ifndef FS_WORLD_SHARING_H
#define FS_WORLD_SHARING_H

#include "fs/world/talk.h"

/* 0 or -errno of the conversation. That nothing can be shared is no error: the server then answers all questions. */
int sharing_offer(struct talk *t);
int sharing_answer(struct talk *t, const struct talk_frame *f); /* to MESSAGE_SEGMENT */

#endif
