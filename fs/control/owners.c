/* Makes owner tables from a layout: one lookup per sample and group. */
#include "fs/control/owners.h"

#include "fs/control/control-private.h"
#include "fs/control/world-view.h"

#include "fs/base/cleanup.h"
#include "fs/plan/stop.h"
#include "fs/world/extents.h"
#include "fs/world/world.h"

#include <errno.h>
#include <string.h>

static struct owner_table *table_of(struct kept_item *item)
{
    return (struct owner_table *)(void *)item;
}

static void table_fini(struct kept_item *item)
{
    struct owner_table *table = table_of(item);
    free(table->host);
    plan_memory_fini(&table->memory);
}

void owners_init(struct kept *owners)
{
    kept_init(owners, sizeof(struct owner_table), table_fini, 1, UINT64_MAX);
}

void owners_put(struct control *control, struct owner_table *table)
{
    if (table)
        kept_put(&control->owners, &table->item);
}

/* The layout that a table is made from: the world's, or an earlier one. NULL: there never was a world. */
struct chosen_layout {
    struct world_view view;
    struct layout *opened;
    const struct layout *layout;
    struct digest digest;
};

static void chosen_fini(struct chosen_layout *chosen)
{
    layout_close(chosen->opened);
    world_view_release(&chosen->view);
}

/* After a restart, a server can ask other nodes as soon as its courier is back. */
static int find_layout(struct control *control, const struct digest *wanted, const struct asker *asker, bool courier,
                       struct layout **layout)
{
    struct peers *peers = control->config.peers;
    int error = peers ? peers_layout(peers, wanted, layout) : -ENOENT;
    if (error == -ENOENT && peers && !courier && peers_await_courier(peers, asker->gave_up, asker->user))
        error = peers_layout(peers, wanted, layout);
    return error;
}

static int choose_layout(struct control *control, const struct digest *wanted, const struct asker *asker,
                         struct chosen_layout *chosen)
{
    char asked[DIGEST_TEXT], current[DIGEST_TEXT];
    *chosen = (struct chosen_layout){.view = world_view_get(control)};
    if (chosen->view.known) {
        chosen->layout = chosen->view.owners;
        chosen->digest = chosen->view.layout;
    }
    if (!wanted || digest_equal(wanted, &chosen->digest))
        return 0;
    int error = find_layout(control, wanted, asker, chosen->view.courier != 0, &chosen->opened);
    if (!error) {
        chosen->layout = chosen->opened;
        chosen->digest = *wanted;
        return 0;
    }
    str_addf(asker->why, "the layout %s is not known here; the current one is %s: ask rank 0 for its `layout` again",
             digest_format(wanted, asked), chosen->view.known ? digest_format(&chosen->digest, current) : "none");
    chosen_fini(chosen);
    return error == -ENOENT || error == -EBADMSG ? -ESTALE : error;
}

_Static_assert((int)PLAN_GROUPS_MOST == (int)GROUPS_MOST, "no world has more groups than a plan may have");

static int table_begin(const struct chosen_layout *chosen, struct owner_table *t)
{
    const struct layout *d = chosen->layout;
    t->layout = chosen->digest;
    t->owners.nodes = d ? layout_nodes(d) : 1;
    t->owners.groups = d ? layout_groups(d) : 1;
    t->host = calloc(t->owners.nodes, sizeof *t->host);
    return t->host && t->owners.groups <= PLAN_GROUPS_MOST ? 0 : -ENOMEM;
}

/* Charged together with the names of the nodes. */
static int table_take_memory(struct control *control, struct samples *list, const struct asker *asker,
                             struct owner_table *t)
{
    uint64_t count = samples_count(list), array = count * t->owners.groups * sizeof(uint16_t);
    const struct plan_memory_of of = {control, list, asker->charge};
    int error = plan_memory_charge(&of, array + t->owners.nodes * sizeof *t->host, &t->memory, asker->why);
    if (!error)
        error = plan_memory_make(control, array, &t->memory, asker->why);
    for (uint32_t g = 0; g < t->owners.groups && !error; g++)
        t->owners.of[g] = (uint16_t *)t->memory.bytes + g * count;
    return error;
}

static void table_name_nodes(const struct control *control, const struct layout *d, struct owner_table *t)
{
    t->me = d ? t->owners.nodes : 0;
    for (uint32_t v = 0; v < t->owners.nodes; v++) {
        snprintf(t->host[v], sizeof t->host[v], "%.*s", NODE_HOST - 1, d ? layout_node(d, v)->host : control->host);
        if (d && strcmp(layout_node(d, v)->id, control->config.mount->id) == 0)
            t->me = v;
    }
}

/* A sample counts for the owner of the extent with its first byte; so a file counts for the owner of its first
 * stripe. */
static int table_fill(const struct control *control, const struct layout *d, struct samples *list,
                      const struct asker *asker, struct owner_table *t)
{
    uint16_t *owner = t->memory.bytes;
    uint32_t count = samples_count(list);
    for (uint32_t i = 0; i < count; i++) {
        if (i % PLAN_SLICE == 0 && asker_gave_up(asker))
            return -EINTR;
        uint32_t file = samples_file(list, i);
        uint64_t extent = d ? extents_at(control->extents, file, samples_offset(list, i)) : 0;
        t->bytes += samples_length(list, i);
        for (uint32_t g = 0; g < t->owners.groups; g++)
            owner[(size_t)g * count + i] = d ? (uint16_t)layout_owner(d, g, extent) : 0;
    }
    return 0;
}

static int table_make(struct control *control, const struct chosen_layout *chosen, struct samples *list,
                      const struct asker *asker, struct owner_table *t)
{
    int error = table_begin(chosen, t);
    if (error)
        return str_no_memory(asker->why);
    error = table_take_memory(control, list, asker, t);
    if (!error) {
        table_name_nodes(control, chosen->layout, t);
        error = table_fill(control, chosen->layout, list, asker, t);
    }
    if (!error)
        charge_keep(&t->memory.charge);
    return error;
}

int owners_find(struct control *control, struct samples *list, const struct digest *wanted, const struct asker *asker,
                struct owner_table **table)
{
    struct chosen_layout chosen;
    struct kept_item *item = NULL;
    int error = choose_layout(control, wanted, asker, &chosen);
    if (error)
        return error;
    const struct digest parts[] = {chosen.digest, *samples_digest(list)}, key = hash128(parts, sizeof parts, 0);
    error = kept_get(&control->owners, &key, asker, &item);
    if (error == 1) {
        error = table_make(control, &chosen, list, asker, table_of(item));
        if (error)
            kept_fail(&control->owners, item);
        else
            kept_done(&control->owners, item, 0);
    }
    chosen_fini(&chosen);
    *table = error ? NULL : table_of(item);
    return error;
}

struct digest owners_layout(struct control *control, const struct plan_request *wanted)
{
    CLEANUP_WORLD_VIEW struct world_view view = world_view_get(control);
    return wanted->pinned ? wanted->layout : view.known ? view.layout : (struct digest){0};
}
