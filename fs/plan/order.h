/* The order of an epoch: a sequence of indices into a sample list. */
#ifndef FS_PLAN_ORDER_H
#define FS_PLAN_ORDER_H

#include "fs/base/str.h"
#include "fs/plan/stop.h"

#include <stdint.h>

/* An order, with echoes and padding, has fewer than 2³² entries. */
enum { PLAN_RANKS_MOST = 1 << 20 };
#define PLAN_ENTRIES_MOST (UINT32_MAX - PLAN_RANKS_MOST)

/* 0…n-1. 0, -EINTR. */
int order_natural(uint32_t *order, uint32_t n, const struct plan_stop *stop);
/* torch.randperm(n) with a CPU generator with this seed (PyTorch 1.13; later versions differ if n ≥ 2³²/20). */
int order_seeded(uint32_t *order, uint32_t n, uint64_t seed, const struct plan_stop *stop);

enum order_form { ORDER_U32, ORDER_U64, ORDER_TEXT };
struct order_rules {
    enum order_form form;
    uint32_t samples; /* number of samples in the list; indices are below it */
    bool distinct;    /* the order must be a permutation of the list */
    const struct plan_stop *stop;
};
/* Reads an order that a user gives: raw little-endian numbers, or decimal numbers with white space. The caller frees
 * `*order`. -EINVAL: not whole numbers, or not a permutation; -ERANGE: not an index of the list; -E2BIG, -ENOMEM: see
 * `why`; -EINTR. */
int order_given(const struct order_rules *rules, const void *payload, size_t n, uint32_t **order, uint32_t *count,
                struct str *why);

#endif
