/* Parses `plan` requests: the table of keys, and their values. Pure. */
#ifndef FS_PLAN_PLAN_REQUEST_H
#define FS_PLAN_PLAN_REQUEST_H

#include "fs/base/keys.h"
#include "fs/plan/epoch-plan.h"
#include "fs/plan/order-digest.h"
#include "fs/plan/order.h"

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
    PLAN_KEY_WITHOUT,
    PLAN_KEY_DISTINCT,
    PLAN_KEY_MODE,
    PLAN_KEY_TAIL,
    PLAN_KEY_SKIP,
    PLAN_KEY_ECHO,
    PLAN_KEY_ECHO_AT,
    PLAN_KEY_ECHO_BUFFER,
    PLAN_KEY_COST,
    PLAN_KEY_BALANCE,
    PLAN_KEY_WINDOW,
    PLAN_KEY_STEP,
    PLAN_KEY_STEPS,
    PLAN_KEY_WORKERS,
    PLAN_KEY_WORKER,
    PLAN_KEY_KEYS,
    PLAN_KEY_NODES,
    PLAN_KEY_LAYOUT,
    PLAN_KEY_DIGEST,
    PLAN_KEY_CATALOG,
    PLAN_KEY_RESUME,
    PLAN_KEY_FEED,
    PLAN_KEYS,
};
/* Choices are in the order of the key's enum. */
extern const struct key plan_keys[PLAN_KEYS + 1];

enum plan_reply { REPLY_TEXT, REPLY_U32, REPLY_U64, REPLY_SUMMARY, REPLY_BYTES, REPLY_SPANS, REPLY_PATHS };
enum plan_order { PLAN_ORDER_SEED, PLAN_ORDER_U32, PLAN_ORDER_U64, PLAN_ORDER_TEXT, PLAN_ORDER_NATURAL };

#define PLAN_ALL_RANKS UINT32_MAX
enum { PLAN_WORKERS_MOST = 1 << 16 };
/* Strings point into the request. */
struct plan_request {
    uint64_t epoch, seed;
    uint32_t ranks, batch;
    uint32_t rank; /* PLAN_ALL_RANKS: not given */
    enum plan_reply reply;
    enum plan_order order;
    const char *samples, *under, *match; /* under, match: NULL: not given */
    uint64_t count;                      /* UINT64_MAX: not given */
    const char *without;                 /* a list of samples to leave out; or NULL */
    bool distinct;
    enum plan_mode mode;
    enum plan_tail tail;
    uint64_t skip;
    uint32_t echo; /* in millionths */
    enum plan_echo_at echo_at;
    uint32_t echo_buffer;     /* in samples */
    const char *cost;         /* NULL: none; "bytes", or a cost list */
    uint32_t balance, window; /* balance in millionths */
    bool chosen;              /* only steps `from` to `to` */
    uint64_t from, to;
    uint32_t workers, worker; /* of the rank's list: batches worker, worker + workers, …; 1 and 0: all */
    const char *nodes;        /* NULL: evenly distributed */
    bool unique_keys;         /* for `reply=bytes`: keys=unique */
    bool pinned;              /* `layout` was given */
    struct digest layout;
    bool digested; /* `digest` was given: the whole plan must have it */
    struct digest digest;
    bool cataloged; /* `catalog` was given: the dataset must have it */
    struct digest catalog;
    bool resumes; /* `resume` was given: the order must have it */
    struct order_digest resume;
    bool feed; /* not part of the plan: read ahead for its ranks on this node */
};

/* `value` comes from keys_parse with `plan_keys`. 0; -EINVAL, -ERANGE and why. */
int plan_request_parse(const struct key_value value[PLAN_KEYS], struct plan_request *request, struct str *why);

static inline bool plan_request_has_payload(const struct plan_request *r)
{
    return r->order == PLAN_ORDER_U32 || r->order == PLAN_ORDER_U64 || r->order == PLAN_ORDER_TEXT;
}

/* The hash of all keys and the payload that choose the sequence of samples of all ranks together. */
uint64_t plan_request_sequence(const struct plan_request *request, const void *payload, size_t n);

/* Parses `nodes=`: numbers below `nodes`, or names of hosts. Several nodes of a rank, such as 0+3, are one unit, which
 * a plan treats as one node; every other node is its own unit. -EINVAL: not one entry per rank, a name that several
 * nodes have, or overlapping units; -ENOENT: no such node; -ENOMEM. */
struct plan_places {
    uint32_t *unit_of_rank, *unit_of_node; /* memory of the caller */
    uint32_t units;                        /* their number */
};
int plan_request_nodes(const struct plan_request *request, const char *const *host, uint32_t nodes,
                       struct plan_places *places, struct str *why);

#endif
