/* Owner tables: made from a layout, one look-up a sample and group. */
#include "fs/control/owners.h"

#include "fs/control/control-private.h"
#include "fs/control/world-view.h"

#include "fs/base/cleanup.h"
#include "fs/plan/stop.h"
#include "fs/world/extents.h"
#include "fs/world/world.h"

#include <errno.h>
#include <string.h>

static struct owner_table *owners_get(struct owner_table *table)
{
    atomic_fetch_add(&table->references, 1);
    return table;
}

void owners_put(struct owner_table *table)
{
    if (!table || atomic_fetch_sub(&table->references, 1) > 1)
        return;
    free(table->host);
    free(table->memory);
    charge_fini(&table->charge);
    free(table);
}

/* The layout that tables are made of: the world's, or an earlier one. NULL: there never was a world. */
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

/* What other nodes have, a server that was restarted can ask for when its courier is back. */
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
                         struct chosen_layout *chosen, struct str *why)
{
    char asked[DIGEST_TEXT], current[DIGEST_TEXT];

    *chosen = (struct chosen_layout){0};
    world_view_get(control, &chosen->view);
    if (chosen->view.known) {
        chosen->layout = chosen->view.owners;
        chosen->digest = chosen->view.layout;
    }
    if (!wanted || memcmp(wanted, &chosen->digest, sizeof *wanted) == 0)
        return 0;
    int error = find_layout(control, wanted, asker, chosen->view.courier != 0, &chosen->opened);
    if (!error) {
        chosen->layout = chosen->opened;
        chosen->digest = *wanted;
        return 0;
    }
    str_addf(why, "the layout %s is not known here: the current one is %s; ask rank 0 for its `layout` again",
             digest_format(wanted, asked), chosen->view.known ? digest_format(&chosen->digest, current) : "none");
    chosen_fini(chosen);
    return error == -ENOENT || error == -EBADMSG ? -ESTALE : error;
}

static struct owner_table *table_allocate(const struct chosen_layout *chosen, struct samples *list,
                                          struct charge *charge)
{
    struct owner_table *t = calloc(1, sizeof *t);
    const struct layout *d = chosen->layout;
    uint32_t count = samples_count(list);

    if (!t)
        return NULL;
    atomic_init(&t->references, 1);
    t->charge = charge_take(charge);
    t->layout = chosen->digest;
    t->list = *samples_digest(list);
    t->owners.nodes = d ? layout_nodes(d) : 1;
    t->owners.groups = d ? layout_groups(d) : 1;
    t->host = calloc(t->owners.nodes, sizeof *t->host);
    t->memory = t->owners.groups <= PLAN_GROUPS_MOST
                    ? malloc(((size_t)count * t->owners.groups + 1) * sizeof *t->memory)
                    : NULL;
    if (!t->host || !t->memory) {
        owners_put(t);
        return NULL;
    }
    for (uint32_t g = 0; g < t->owners.groups; g++)
        t->owners.of[g] = t->memory + (size_t)g * count;
    return t;
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

/* A file counts for the owner of its first stripe. */
static int table_fill(const struct control *control, const struct layout *d, struct samples *list,
                      const struct asker *asker, struct owner_table *t)
{
    uint32_t count = samples_count(list);

    for (uint32_t i = 0; i < count; i++) {
        if (i % PLAN_SLICE == 0 && asker_gave_up(asker))
            return -EINTR;
        uint32_t file = samples_file(list, i);
        uint64_t extent = d ? extents_first(control->extents, file) : 0;
        t->bytes += catalog_file(control->config.catalog, file).size;
        for (uint32_t g = 0; g < t->owners.groups; g++)
            t->memory[(size_t)g * count + i] = d ? (uint16_t)layout_owner(d, g, extent) : 0;
    }
    return 0;
}

/* A table of the caller's own. */
static int table_make(struct control *control, const struct chosen_layout *chosen, struct samples *list,
                      const struct asker *asker, struct owner_table **table, struct str *why)
{
    const struct layout *d = chosen->layout;
    uint64_t groups = d ? layout_groups(d) : 1, nodes = d ? layout_nodes(d) : 1;
    struct charge charge = charge_like(asker->charge);
    int error = charge_add(&charge, samples_count(list) * groups * sizeof(uint16_t) + nodes * NODE_HOST, why);

    if (error)
        return error;
    struct owner_table *t = table_allocate(chosen, list, &charge);
    charge_fini(&charge);
    if (!t)
        return str_no_memory(why);
    table_name_nodes(control, d, t);
    error = table_fill(control, d, list, asker, t);
    if (error)
        owners_put(t);
    else
        *table = t;
    return error;
}

static struct owner_table *kept_get(struct control *control, const struct digest *layout, struct samples *list)
{
    pthread_mutex_lock(&control->owners_lock);
    struct owner_table *t = control->owners;
    bool fits = t && memcmp(&t->layout, layout, sizeof *layout) == 0 &&
                memcmp(&t->list, samples_digest(list), sizeof t->list) == 0;
    if (fits)
        owners_get(t);
    pthread_mutex_unlock(&control->owners_lock);
    return fits ? t : NULL;
}

static void kept_set(struct control *control, struct owner_table *table)
{
    charge_keep(&table->charge);
    pthread_mutex_lock(&control->owners_lock);
    struct owner_table *old = control->owners;
    control->owners = owners_get(table);
    pthread_mutex_unlock(&control->owners_lock);
    owners_put(old);
}

bool owners_drop(struct control *control)
{
    pthread_mutex_lock(&control->owners_lock);
    struct owner_table *old = steal_pointer(control->owners);
    pthread_mutex_unlock(&control->owners_lock);
    owners_put(old);
    return old != NULL;
}

int owners_find(struct control *control, struct samples *list, const struct digest *wanted, const struct asker *asker,
                struct owner_table **table, struct str *why)
{
    struct chosen_layout chosen;
    int error = choose_layout(control, wanted, asker, &chosen, why);

    if (error)
        return error;
    struct owner_table *t = kept_get(control, &chosen.digest, list);
    if (!t) {
        error = table_make(control, &chosen, list, asker, &t, why);
        if (!error)
            kept_set(control, t);
    }
    chosen_fini(&chosen);
    *table = t;
    return error;
}
