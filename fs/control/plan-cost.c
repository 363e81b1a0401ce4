/* Costs of samples; and the verb `costs`, which uploads them. */
#include "fs/control/plan-cost.h"

#include "fs/control/control-private.h"
#include "fs/control/list-sharing.h"
#include "fs/control/lists.h"
#include "fs/control/verbs.h"

#include <errno.h>
#include <string.h>

/* --- of a plan --- */

static int find_costs(struct control *control, const struct samples *list, const char *name, const struct asker *asker,
                      struct plan_cost *cost)
{
    int looked = 0;
    cost->list = samples_table_costs(control->samples, name);
    /* perhaps put on another node while this one was away */
    if (!cost->list || !samples_costs_are_of(cost->list, list)) {
        looked = sharing_look(control, asker);
        samples_put(cost->list);
        cost->list = samples_table_costs(control->samples, name);
    }
    if (cost->list && samples_costs_are_of(cost->list, list)) {
        cost->digest = *samples_digest(cost->list);
        return 0;
    }
    if (!cost->list) {
        int error = lists_absent(looked, true, name, asker->why);
        if (error == -ENOENT)
            str_adds(asker->why, ": upload it with `costs name=NAME`");
        return error;
    }
    str_adds(asker->why, "the costs `");
    str_add_printable(asker->why, name, strlen(name));
    return str_fail(asker->why, -EINVAL,
                    "` belong to another list, or to another version of it: upload them for this list");
}

int plan_cost_find(struct control *control, const struct samples *list, const struct plan_request *wanted,
                   const struct asker *asker, struct plan_cost *cost)
{
    static const char bytes[] = "bytes";
    if (!wanted->cost)
        return 0;
    if (strcmp(wanted->cost, bytes) != 0)
        return find_costs(control, list, wanted->cost, asker, cost);
    cost->digest = hash128(bytes, sizeof bytes, 0);
    return 0;
}

void plan_cost_fini(struct plan_cost *cost)
{
    samples_put(cost->list);
    *cost = (struct plan_cost){0};
}

uint64_t plan_cost_of(const struct plan_cost *cost, const struct samples *list, uint32_t sample)
{
    return cost->list ? samples_costs(cost->list)[sample] : samples_length(list, sample);
}

/* --- an upload --- */

enum { KEY_NAME, KEY_SAMPLES, KEY_ACTION };
enum { ACTION_PUT, ACTION_REMOVE };
static const struct key keys[] = {[KEY_NAME] = {.name = "name", .value = "NAME", .required = true},
                                  [KEY_SAMPLES] = {.name = "samples", .value = "LIST"},
                                  [KEY_ACTION] = {.name = "action", .choices = "put|remove"},
                                  {0}};

/* Names with another meaning in `cost=`. */
static bool is_taken(const char *name)
{
    return strcmp(name, "none") == 0 || strcmp(name, "bytes") == 0;
}

static int costs_put(struct control *control, const struct request *request, const struct asker *asker)
{
    const char *of = request->value[KEY_SAMPLES].text ? request->value[KEY_SAMPLES].text : "all";
    CLEANUP_CHARGE struct charge charge = charge_like(asker->charge);
    CLEANUP_SAMPLES struct samples *list = NULL;
    struct samples *costs;
    int error = lists_get(control, of, asker, &list);
    if (error)
        return error;
    error = charge_add(&charge, request->payload_length, asker->why);
    if (!error)
        error = samples_from_costs(list, request->payload, request->payload_length, &costs, asker->why);
    return error ? error : lists_put(control, &(struct list_put){request->value[KEY_NAME].text, costs, 0}, asker);
}

static int costs_run(struct control *control, const struct request *request, const struct asker *asker)
{
    if (is_taken(request->value[KEY_NAME].text))
        return str_fail(asker->why, -EINVAL, "`name`: `none` and `bytes` are reserved");
    return request->value[KEY_ACTION].choice == ACTION_REMOVE ? lists_remove(control, request, asker)
                                                              : costs_put(control, request, asker);
}

const struct verb verb_costs = {
    .name = "costs",
    .about = "upload costs: a little-endian 32-bit number per sample; reply: number of samples, digest. For all nodes",
    .keys = keys,
    .payload_most = PAYLOAD_MOST,
    .run = costs_run,
};
