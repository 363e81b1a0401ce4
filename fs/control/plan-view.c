/* Descriptions of plans, in replies and in `status`. */
#include "fs/control/plan-view.h"

#include "fs/control/control-private.h"
#include "fs/control/list-sharing.h"
#include "fs/control/plans.h"
#include "fs/control/verbs.h"

#include "fs/base/cleanup.h"

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Ratios are in millionths. */
static void add_costs(struct json *json, const struct plan_costs *c)
{
    json_begin_object(json, "slowest_by_mean");
    json_fixed(json, "median_before", c->median_before / 1e6, 4);
    json_fixed(json, "worst_before", c->worst_before / 1e6, 4);
    json_fixed(json, "median", c->median_after / 1e6, 4);
    json_fixed(json, "worst", c->worst_after / 1e6, 4);
    json_end_object(json);
    json_begin_object(json, "swaps");
    json_uint(json, "count", c->swaps);
    json_int(json, "moved", c->moved);
    json_int(json, "moved_bytes", c->moved_bytes);
    json_end_object(json);
}

void plan_view_add(struct json *json, const struct planned *p)
{
    static const struct digest never; /* compared with: was there a world? */
    const struct plan_summary *s = &p->summary;
    char digest[DIGEST_TEXT], layout[DIGEST_TEXT];
    bool known = memcmp(&p->layout, &never, sizeof never) != 0;
    json_uints(json, {"epoch", p->epoch}, {"ranks", p->shape.ranks}, {"batch", p->batch});
    json_string(json, "mode", p->mode == PLAN_LOCALITY ? "locality" : p->mode == PLAN_REGULAR ? "regular" : "local");
    json_string(json, "digest", digest_format(&s->digest, digest));
    json_string(json, "layout", known ? digest_format(&p->layout, layout) : NULL);
    json_uints(json, {"steps", s->steps}, {"samples", s->samples}, {"fresh", s->fresh},
               {"fresh_bytes", s->fresh_bytes});
    json_fixed(json, "duplicates_percent", percent(s->duplicates, s->samples), 3);
    json_uint(json, "refetched", s->refetched);
    json_fixed(json, "local_percent", percent(s->local, s->samples), 3);
    json_uints(json, {"moved", s->moved}, {"moved_bytes", s->moved_bytes}, {"unowned", s->unowned},
               {"unowned_bytes", s->unowned_bytes}, {"unread", s->unread}, {"transfers", s->transfers});
    json_begin_object(json, "imbalance_percent");
    json_fixed(json, "mean", percent(s->moved, s->samples), 3);
    json_fixed(json, "worst", percent(s->worst_moved, s->worst_of), 3);
    json_end_object(json);
    if (p->costed)
        add_costs(json, &s->costs);
}

/* A sample counts by its first byte. */
static bool is_held(struct store *store, const struct samples *list, uint32_t sample)
{
    enum tier_name tier;
    return store_where(store, samples_file(list, sample), samples_offset(list, sample), &tier) == 0;
}

uint32_t plan_ranks_node(const struct plan_ranks *ranks, uint32_t rank)
{
    return ranks->node ? ranks->node[rank] : placement_even(ranks->nodes, ranks->count, rank);
}

void plan_view_add_held(struct json *json, const struct planned *p, const struct plan_ranks *ranks,
                        const struct samples *list, struct store *store)
{
    uint64_t samples = 0, held = 0;
    for (uint32_t rank = 0; rank < p->shape.ranks && store; rank++) {
        if (plan_ranks_node(ranks, rank) != ranks->me)
            continue;
        const uint32_t *sample = p->lists + plan_shape_place(&p->shape, rank);
        uint64_t length = plan_shape_length(&p->shape, rank);
        for (uint64_t i = 0; i < length; i++)
            held += is_held(store, list, sample[i]);
        samples += length;
    }
    if (samples)
        json_fixed(json, "held_percent", percent(held, samples), 3);
    else
        json_string(json, "held_percent", NULL);
}

void verb_plan_add_status(struct json *json, struct control *control)
{
    struct plans *plans = control->plans;
    LOCK_SCOPE(&plans->kept.lock);
    json_begin_object(json, "plans");
    json_uints(json, {"made", plans->made}, {"misplaced", plans->misplaced});
    json_begin_object(json, "newest"); /* it may no longer be cached */
    json_uints(json, {"steps", plans->last.steps}, {"samples", plans->last.samples}, {"fresh", plans->last.fresh},
               {"fresh_bytes", plans->last.fresh_bytes});
    json_end_object(json);
    json_begin_array(json, "last");
    const struct kept_item *item;
    TAILQ_FOREACH(item, &plans->kept.order, by_use)
        if (item->ready) {
            json_begin_object(json, NULL);
            plan_view_add(json, (const struct planned *)(const void *)item);
            json_end_object(json);
        }
    json_end_array(json);
    json_end_object(json);
}

void plan_view_add_lacking(struct json *json, struct control *control, const struct plan_request *r)
{
    const char *const names[] = {r->samples, r->without, r->cost};
    uint32_t node[LACKING_MOST];
    bool lacks[NODES_MOST] = {false};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (uint32_t n = names[i] ? sharing_lacking(control, names[i], node) : 0; n > 0; n--)
            lacks[node[n - 1]] = true;
    json_begin_array(json, "lacking");
    for (uint32_t v = 0; v < NODES_MOST; v++)
        if (lacks[v])
            json_uint(json, NULL, v);
    json_end_array(json);
}
