/* The order of local reading. */
#include "fs/plan/local.h"

#include "fs/base/cleanup.h"
#include "fs/plan/deal.h"

#include <errno.h>
#include <stdlib.h>

int local_order(const struct placement *placement, const struct owners *owners, const uint32_t *order, uint32_t count,
                const struct plan_stop *stop, uint32_t **out)
{
    CLEANUP_FREE uint32_t *merged = malloc((count + 1ul) * sizeof *merged);
    struct deal *deal;

    if (!merged || deal_create(placement, owners, count, 0, &deal))
        return -ENOMEM;
    int error = plan_stopped(stop) ? -EINTR : 0;
    if (!error)
        deal_merged(deal, order, count, merged);
    deal_destroy(deal);
    if (error || plan_stopped(stop))
        return -EINTR;
    *out = steal_pointer(merged);
    return 0;
}
