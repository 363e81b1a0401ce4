/* What can be said in a `plan` request: the values of its keys made into parameters. Pure; which keys there are and
 * that each is given once has been checked by whoever took the request's line apart. */
#ifndef FS_PLAN_REQUEST_H
#define FS_PLAN_REQUEST_H

#include "fs/plan/order.h"
#include "fs/plan/plan.h"

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
    PLAN_KEY_DIRECTORY,
    PLAN_KEYS,
};
extern const char *const plan_key_names[PLAN_KEYS];
/* "a|b|c" in the order of the enum that the key sets, the first one the default; NULL: any value. */
extern const char *const plan_key_choices[PLAN_KEYS];

enum plan_reply { REPLY_TEXT, REPLY_U32, REPLY_U64, REPLY_SUMMARY };
enum plan_order { PLAN_ORDER_SEED, PLAN_ORDER_U32, PLAN_ORDER_U64, PLAN_ORDER_TEXT, PLAN_ORDER_NATURAL };

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
    uint32_t echo_buffer;
    const char *nodes; /* NULL: evenly */
    bool pinned;       /* `directory` was given */
    struct digest directory;
};

/* value[key] is NULL where the key is not given. 0; -EINVAL, -ERANGE and why. */
int plan_request_parse(const char *const value[PLAN_KEYS], struct plan_request *request, struct str *why);

static inline bool plan_request_has_payload(const struct plan_request *r)
{
    return r->order == PLAN_ORDER_U32 || r->order == PLAN_ORDER_U64 || r->order == PLAN_ORDER_TEXT;
}

/* The list of `nodes=`, numbers below `nodes` or names of hosts, into `node_of_rank`. -EINVAL: not one a rank, or a
 * name that several nodes have; -ENOENT: no such node. */
int plan_request_nodes(const struct plan_request *request, const char *const *host, uint32_t nodes,
                       uint32_t *node_of_rank, struct str *why);

#endif
