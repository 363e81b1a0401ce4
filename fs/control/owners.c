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
    plan_memory_fini(&table->memory);
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

static struct owner_table *table_allocate(const struct chosen_layout *chosen, struct samples *list)
{
    struct owner_table *t = calloc(1, sizeof *t);
    const struct layout *d = chosen->layout;
    if (!t)
        return NULL;
    atomic_init(&t->references, 1);
    t->layout = chosen->digest;
    t->list = *samples_digest(list);
    t->owners.nodes = d ? layout_nodes(d) : 1;
    t->owners.groups = d ? layout_groups(d) : 1;
    t->host = calloc(t->owners.nodes, sizeof *t->host);
    if (t->host && t->owners.groups <= PLAN_GROUPS_MOST)
        return t;
    owners_put(t);
    return NULL;
}

/* Charged for with the names of the nodes. */
static int table_take_memory(struct control *control, struct samples *list, const struct asker *asker,
                             struct owner_table *t, struct str *why)
{
    uint64_t count = samples_count(list), array = count * t->owners.groups * sizeof(uint16_t);
    int error =
        plan_memory_charge(control, list, asker->charge, array + t->owners.nodes * sizeof *t->host, &t->memory, why);
    if (!error)
        error = plan_memory_make(control, array, &t->memory, why);
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

/* A sample counts for the owner of the extent that has its first byte: of a file, for the owner of its first stripe. */
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

/* A table of the caller's own. */
static int table_make(struct control *control, const struct chosen_layout *chosen, struct samples *list,
                      const struct asker *asker, struct owner_table **table, struct str *why)
{
    const struct layout *d = chosen->layout;
    struct owner_table *t = table_allocate(chosen, list);
    if (!t)
        return str_no_memory(why);
    int error = table_take_memory(control, list, asker, t, why);
    if (!error) {
        table_name_nodes(control, d, t);
        error = table_fill(control, d, list, asker, t);
    }
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
    charge_keep(&table->memory.charge);
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
