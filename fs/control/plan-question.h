/* What is asked of `plan`, and what the plan was made of. */
#ifndef FS_CONTROL_PLAN_QUESTION_H
#define FS_CONTROL_PLAN_QUESTION_H

#include "fs/control/epoch-stream.h"
#include "fs/control/protocol.h"
#include "fs/plan/plan-request.h"

/* What a plan was made of. */
struct plan_origin {
    struct digest layout; /* zeros: there never was a world */
    struct digest key;    /* of all of it, the layout and the list among it */
};

/* What is asked for, and by whom. */
struct plan_question {
    struct plan_request wanted;
    const char *payload; /* the order, where wanted.order is in it */
    size_t payload_length;
    const struct asker *asker;
    /* Where set, instead of a reply: called for each sample, step after step. */
    int (*visit)(void *user, const struct samples *list, uint32_t sample);
    void *user;
    struct epoch_stream **stream; /* where that of `reply=bytes` goes, a reference. NULL: there can be none */
};

#endif
