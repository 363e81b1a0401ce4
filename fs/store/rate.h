/* Limits the bytes per second that are read from the source. The loader's lock guards it.
 *
 * A read may begin when earlier reads are paid for. Readers wait only for what readers have read; everything else waits
 * for all earlier reads. So readers take precedence, and the others get the rate that readers leave. Together they
 * exceed the rate by at most one piece of each kind. */
#ifndef FS_STORE_RATE_H
#define FS_STORE_RATE_H

#include "fs/base/clock.h"

#include <stdbool.h>

struct source_rate {
    uint64_t most;         /* bytes per second; 0: unlimited */
    uint64_t paid_readers; /* when the reads of readers are paid for (clock_now); at most paid_all */
    uint64_t paid_all;
};

enum { RATE_CREDIT_MS = 50 }; /* a thread that wakes late may catch up this much */

/* When the next read may begin. */
static inline uint64_t rate_due(const struct source_rate *r, bool reader)
{
    return reader ? r->paid_readers : r->paid_all;
}

static inline void rate_add(uint64_t *paid, uint64_t now, uint64_t time)
{
    uint64_t credit = RATE_CREDIT_MS * MILLISECOND, least = now > credit ? now - credit : 0;
    *paid = (*paid > least ? *paid : least) + time;
}

static inline void rate_pay(struct source_rate *r, bool reader, uint64_t bytes, uint64_t now)
{
    uint64_t time = (uint64_t)((double)bytes / (double)r->most * (double)SECOND);
    if (reader)
        rate_add(&r->paid_readers, now, time);
    rate_add(&r->paid_all, now, time);
}

#endif
