/* The digest of an order: what a checkpoint needs to resume an epoch. It covers all that chooses the sequence of
 * samples of all ranks together, and neither ranks, nodes, layout nor mode. It has three parts, so that a refusal can
 * say what has changed.
 *
 * The digest of a plan (fs/control/verb-plan.c) also covers who reads what. */
#ifndef FS_PLAN_ORDER_DIGEST_H
#define FS_PLAN_ORDER_DIGEST_H

#include "fs/base/str.h"

#include <stdint.h>

enum { ORDER_SAMPLES, ORDER_WITHOUT, ORDER_SEQUENCE, ORDER_PARTS };
struct order_digest {
    uint64_t part[ORDER_PARTS]; /* two of samples_path_digest; plan_request_sequence */
};

enum { ORDER_DIGEST_TEXT = 17 * ORDER_PARTS };
char *order_digest_format(const struct order_digest *d, char text[ORDER_DIGEST_TEXT]);
int order_digest_parse(const char *text, struct order_digest *d); /* 0 or -EINVAL */
/* 0; -ESTALE and what has changed since. */
int order_digest_check(const struct order_digest *is, const struct order_digest *was, struct str *why);

#endif
