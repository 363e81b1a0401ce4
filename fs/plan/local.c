/* Lists of nodes, of which their ranks take in turn. They are of the whole epoch: what is skipped was dealt to the same
 * nodes as if nothing were skipped. */
#include "fs/plan/local.h"

#include "fs/base/cleanup.h"
#include "fs/plan/deal.h"

#include <errno.h>

struct local {
    const struct batches *batches;
    const struct placement *placement;
    uint32_t *entry; /* the nodes' lists, one after the other */
    uint64_t *next;  /* by node: where what is not skipped of its list begins */
};

void local_destroy(struct local *local)
{
    int saved = errno;

    if (!local)
        return;
    free(local->entry);
    free(local->next);
    free(local);
    errno = saved;
}

/* The length of each node's list. */
static void set_targets(struct local *l, uint32_t *target)
{
    const struct placement *p = l->placement;
    const struct batches *b = l->batches;
    uint64_t place = 0;

    for (uint32_t v = 0; v < p->nodes; v++) {
        uint32_t skipped = 0, shares = 0;
        for (uint32_t s = p->first[v]; s < p->first[v + 1]; s++) {
            skipped += batches_share(b->skip, p->ranks, p->rank[s]);
            shares += batches_share(b->total, p->ranks, p->rank[s]);
        }
        l->next[v] = place + skipped;
        target[v] = skipped + shares;
        place += target[v];
    }
}

/* The order where it is filled up. */
static uint32_t *fill_up(const struct batches *b, uint32_t n)
{
    uint32_t *whole = malloc(n * sizeof *whole);

    for (uint32_t i = 0; whole && i < n; i++)
        whole[i] = b->order[i % b->count];
    return whole;
}

static int local_make(struct local *l, const struct owners *owners, const struct plan_stop *stop)
{
    const struct batches *b = l->batches;
    uint32_t nodes = l->placement->nodes, n = b->skip + b->total;
    CLEANUP_FREE uint32_t *target = calloc(nodes, sizeof *target);
    CLEANUP_FREE uint32_t *filled_up = NULL;
    struct deal *deal;

    l->next = calloc(nodes, sizeof *l->next);
    l->entry = malloc((n + 1ul) * sizeof *l->entry);
    if (!target || !l->next || !l->entry)
        return -ENOMEM;
    if (plan_stopped(stop))
        return -EINTR;
    if (n > b->count && !(filled_up = fill_up(b, n)))
        return -ENOMEM;
    if (deal_create(l->placement, owners, n, 0, &deal))
        return -ENOMEM;
    set_targets(l, target);
    deal_nodes(deal, filled_up ? filled_up : b->order, n, target, l->entry);
    deal_destroy(deal);
    return plan_stopped(stop) ? -EINTR : 0;
}

int local_create(const struct batches *batches, const struct placement *placement, const struct owners *owners,
                 const struct plan_stop *stop, struct local **local)
{
    struct local *l = calloc(1, sizeof *l);

    if (!l)
        return -ENOMEM;
    l->batches = batches;
    l->placement = placement;
    int error = local_make(l, owners, stop);
    if (error) {
        local_destroy(l);
        return error;
    }
    *local = l;
    return 0;
}

void local_deal(const struct local *l, uint64_t step, uint32_t *out)
{
    const struct placement *p = l->placement;
    uint32_t n = batches_length(l->batches, step);
    uint64_t before = step * (l->batches->size / p->ranks);

    for (uint32_t v = 0; v < p->nodes; v++)
        for (uint32_t s = p->first[v]; s < p->first[v + 1]; s++) {
            uint32_t ranks = p->first[v + 1] - p->first[v], place = batches_place(n, p->ranks, p->rank[s]);
            uint32_t share = batches_share(n, p->ranks, p->rank[s]);
            const uint32_t *list = l->entry + l->next[v] + before * ranks + (s - p->first[v]);
            for (uint32_t i = 0; i < share; i++)
                out[place + i] = list[(uint64_t)i * ranks];
        }
}
