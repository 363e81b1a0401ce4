/* The order of an epoch: a sequence of indices into a sample list. */
#ifndef FS_PLAN_ORDER_H
#define FS_PLAN_ORDER_H

#include "fs/base/str.h"
#include "fs/plan/stop.h"

#include <stdint.h>

/* An order, echoes and padding included, has fewer entries than fit into 32 bits. */
enum { PLAN_RANKS_MOST = 1 << 20 };
#define PLAN_ENTRIES_MOST (UINT32_MAX - PLAN_RANKS_MOST)

/* 0…n-1. 0, -EINTR. */
int order_natural(uint32_t *order, uint32_t n, const struct plan_stop *stop);
/* torch.randperm(n) of a CPU generator with this seed (PyTorch 1.13; later versions differ where n ≥ 2³²/20). */
int order_seeded(uint32_t *order, uint32_t n, uint64_t seed, const struct plan_stop *stop);

enum order_form { ORDER_U32, ORDER_U64, ORDER_TEXT };
struct order_rules {
    enum order_form form;
    uint32_t samples; /* of the list: an index is below it */
    bool distinct;    /* the order must be a permutation of the list */
    const struct plan_stop *stop;
};
/* An order that a user gives: raw little-endian numbers, or decimal ones with white space between them. `*order` is
 * the caller's to free. -EINVAL: not whole numbers, not a permutation; -ERANGE: no index of the list; -E2BIG, -ENOMEM,
 * -EINTR; `why` tells, for all but the last. */
int order_given(const struct order_rules *rules, const void *payload, size_t n, uint32_t **order, uint32_t *count,
                struct str *why);

#endif
