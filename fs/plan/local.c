/* The order of local reading. */
#include "fs/plan/local.h"

#include "fs/plan/deal.h"

#include <errno.h>

int local_order(const struct placement *placement, const struct owners *owners, const uint32_t *order, uint32_t count,
                const struct plan_stop *stop, uint32_t *merged)
{
    struct deal *deal;
    if (deal_create(placement, owners, count, 0, false, &deal))
        return -ENOMEM;
    int error = plan_stopped(stop) ? -EINTR : 0;
    if (!error)
        deal_merged(deal, order, count, merged);
    deal_destroy(deal);
    return error || plan_stopped(stop) ? -EINTR : 0;
}
