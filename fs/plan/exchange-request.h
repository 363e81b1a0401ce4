/* Parses `exchange` and `shuffle` requests: their keys and values. Pure. */
#ifndef FS_PLAN_EXCHANGE_REQUEST_H
#define FS_PLAN_EXCHANGE_REQUEST_H

#include "fs/base/keys.h"

#include <stdint.h>

extern const struct key exchange_keys[], shuffle_keys[];

struct exchange_request {
    uint64_t epoch, seed;
    uint64_t wait;     /* seconds */
    uint32_t fraction; /* in millionths */
};

/* `value` comes from keys_parse with one of the two tables of keys; fields without a key are 0. 0; -EINVAL, -ERANGE
 * and why. */
int exchange_request_parse(const struct key *keys, const struct key_value *value, struct exchange_request *request,
                           struct str *why);

#endif
