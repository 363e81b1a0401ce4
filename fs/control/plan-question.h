/* A question to the verb `plan`, and the inputs of the plan. */
#ifndef FS_CONTROL_PLAN_QUESTION_H
#define FS_CONTROL_PLAN_QUESTION_H

#include "fs/control/epoch-stream.h"
#include "fs/control/protocol.h"
#include "fs/plan/plan-request.h"

/* The inputs of a plan. */
struct plan_origin {
    struct digest layout; /* zeros: there has been no world */
    struct digest key;    /* hash of all inputs, including layout and list */
};

/* A request for a plan, and the process that sent it. */
struct plan_question {
    struct plan_request wanted;
    const char *payload; /* the order, if wanted.order says that it is in the payload */
    size_t payload_length;
    const struct asker *asker;
    /* If set, it is called for each sample, step by step, instead of a reply. */
    int (*visit)(void *user, const struct samples *list, uint32_t sample);
    void *user;
    struct epoch_stream **stream; /* gets a reference to the stream of `reply=bytes`. NULL: there can be none */
};

#endif
