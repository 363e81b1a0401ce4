/* A cache of a few plans. */
#include "fs/control/plans.h"

#include <stdlib.h>

static struct planned *planned_of(struct kept_item *item)
{
    return (struct planned *)(void *)item;
}

static void planned_fini(struct kept_item *item)
{
    plan_memory_fini(&planned_of(item)->memory);
}

struct plans *plans_create(uint64_t most)
{
    struct plans *plans = calloc(1, sizeof *plans);
    if (plans)
        kept_init(&plans->kept, sizeof(struct planned), planned_fini, PLANS_KEPT, most);
    return plans;
}

void plans_destroy(struct plans *plans)
{
    if (plans)
        kept_fini(&plans->kept);
    free(plans);
}

int plans_get(struct plans *plans, const struct digest *key, const struct asker *asker, struct planned **planned)
{
    struct kept_item *item = NULL;
    int result = kept_get(&plans->kept, key, asker, &item);
    *planned = planned_of(item);
    return result;
}

/* Lists in files have their own budget. */
void plans_made(struct plans *plans, struct planned *planned)
{
    uint64_t entries = plan_shape_place(&planned->shape, planned->shape.ranks);
    charge_keep(&planned->memory.charge);
    pthread_mutex_lock(&plans->kept.lock);
    plans->made++;
    plans->last = planned->summary;
    pthread_mutex_unlock(&plans->kept.lock);
    kept_done(&plans->kept, &planned->item, planned->memory.file.bytes ? 0 : entries * sizeof *planned->lists);
}

void plans_failed(struct plans *plans, struct planned *planned)
{
    kept_fail(&plans->kept, &planned->item);
}

void plans_put(struct plans *plans, struct planned *planned)
{
    kept_put(&plans->kept, &planned->item);
}

struct planned *plans_find(struct plans *plans, const struct digest *digest, const struct digest *terms)
{
    struct kept_item *item;
    pthread_mutex_lock(&plans->kept.lock);
    TAILQ_FOREACH(item, &plans->kept.order, by_use)
        if (item->ready && digest_equal(&planned_of(item)->summary.digest, digest) &&
            digest_equal(&planned_of(item)->terms, terms))
            break;
    if (item)
        kept_use(&plans->kept, item);
    pthread_mutex_unlock(&plans->kept.lock);
    return planned_of(item);
}
