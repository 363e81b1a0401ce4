/* What can be said in a `plan` request: the table of its keys, and their values made into parameters. Pure. */
#ifndef FS_PLAN_PLAN_REQUEST_H
#define FS_PLAN_PLAN_REQUEST_H

#include "fs/base/keys.h"
#include "fs/plan/order.h"
#include "fs/plan/epoch-plan.h"

enum plan_key {
    PLAN_KEY_EPOCH,
    PLAN_KEY_RANKS,
    PLAN_KEY_BATCH,
    PLAN_KEY_RANK,
    PLAN_KEY_REPLY,
    PLAN_KEY_SEED,
    PLAN_KEY_ORDER,
    PLAN_KEY_SAMPLES,
    PLAN_KEY_UNDER,
    PLAN_KEY_MATCH,
    PLAN_KEY_COUNT,
    PLAN_KEY_DISTINCT,
    PLAN_KEY_MODE,
    PLAN_KEY_TAIL,
    PLAN_KEY_SKIP,
    PLAN_KEY_ECHO,
    PLAN_KEY_ECHO_AT,
    PLAN_KEY_ECHO_BUFFER,
    PLAN_KEY_NODES,
    PLAN_KEY_LAYOUT,
    PLAN_KEY_DIGEST,
    PLAN_KEY_FEED,
    PLAN_KEYS,
};
/* Choices are in the order of the enum that the key sets. */
extern const struct key plan_keys[PLAN_KEYS + 1];

enum plan_reply { REPLY_TEXT, REPLY_U32, REPLY_U64, REPLY_SUMMARY };
enum plan_order { PLAN_ORDER_SEED, PLAN_ORDER_U32, PLAN_ORDER_U64, PLAN_ORDER_TEXT, PLAN_ORDER_NATURAL };

#define PLAN_ALL_RANKS UINT32_MAX
/* Texts are those of the request. */
struct plan_request {
    uint64_t epoch, seed;
    uint32_t ranks, batch;
    uint32_t rank; /* PLAN_ALL_RANKS: no key */
    enum plan_reply reply;
    enum plan_order order;
    const char *samples, *under, *match; /* under, match: NULL where not given */
    uint64_t count;                      /* UINT64_MAX: not given */
    bool distinct;
    enum plan_mode mode;
    enum plan_tail tail;
    uint64_t skip;
    uint32_t echo; /* in millionths */
    enum plan_echo_at echo_at;
    uint32_t echo_buffer; /* in samples */
    const char *nodes;    /* NULL: evenly */
    bool pinned;          /* `layout` was given */
    struct digest layout;
    bool digested; /* `digest` was given: of the whole plan, which is this one or none */
    struct digest digest;
    bool feed; /* no part of the plan: its ranks on this node want to find what they read in the page cache */
};

/* Of values that keys_parse took out of `plan_keys`. 0; -EINVAL, -ERANGE and why. */
int plan_request_parse(const struct key_value value[PLAN_KEYS], struct plan_request *request, struct str *why);

static inline bool plan_request_has_payload(const struct plan_request *r)
{
    return r->order == PLAN_ORDER_U32 || r->order == PLAN_ORDER_U64 || r->order == PLAN_ORDER_TEXT;
}

/* The list of `nodes=`, numbers below `nodes` or names of hosts, into `node_of_rank`. -EINVAL: not one a rank, or a
 * name that several nodes have; -ENOENT: no such node. */
int plan_request_nodes(const struct plan_request *request, const char *const *host, uint32_t nodes,
                       uint32_t *node_of_rank, struct str *why);

#endif
