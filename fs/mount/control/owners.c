/* Owner tables: made from a directory, one look-up a sample and group. */
#include "fs/mount/control/owners.h"

#include "fs/mount/control/world.h"

#include "fs/base/cleanup.h"
#include "fs/plan/stop.h"
#include "fs/world/extents.h"
#include "fs/world/world.h"

#include <errno.h>
#include <string.h>

void owner_cache_init(struct owner_cache *cache)
{
    pthread_mutex_init(&cache->lock, NULL);
    cache->last = NULL;
}

void owner_cache_fini(struct owner_cache *cache)
{
    owners_put(cache->last);
    pthread_mutex_destroy(&cache->lock);
}

static struct owner_table *get(struct owner_table *table)
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
    free(table);
}

/* The directory that tables are made of: the world's, or one from disk. NULL: there never was a world. */
struct chosen {
    struct world_view view;
    struct directory *opened;
    const struct directory *directory;
    struct digest digest;
};

static void chosen_fini(struct control *control, struct chosen *chosen)
{
    (void)control;
    directory_close(chosen->opened);
    control_view_release(&chosen->view);
}

static int open_kept(struct control *control, const struct digest *wanted, struct chosen *chosen)
{
    int error = world_open_directory(control->config.mount->state, control->config.catalog, wanted, &chosen->opened);
    return error == -ENOENT || error == -EBADMSG ? -ESTALE : error;
}

static int choose(struct control *control, const struct digest *wanted, struct chosen *chosen, struct str *why)
{
    char asked[DIGEST_TEXT], current[DIGEST_TEXT];

    *chosen = (struct chosen){0};
    control_view(control, &chosen->view);
    if (chosen->view.known) {
        chosen->directory = chosen->view.owners;
        chosen->digest = chosen->view.directory;
    }
    if (!wanted || memcmp(wanted, &chosen->digest, sizeof *wanted) == 0)
        return 0;
    int error = open_kept(control, wanted, chosen);
    if (!error) {
        chosen->directory = chosen->opened;
        chosen->digest = *wanted;
        return 0;
    }
    str_addf(why, "the directory %s is not known here: the current one is %s; ask rank 0 for its `directory` again",
             digest_format(wanted, asked), chosen->view.known ? digest_format(&chosen->digest, current) : "none");
    chosen_fini(control, chosen);
    return error;
}

static struct owner_table *allocate(const struct chosen *chosen, struct samples *list)
{
    struct owner_table *t = calloc(1, sizeof *t);
    const struct directory *d = chosen->directory;
    uint32_t count = samples_count(list);

    if (!t)
        return NULL;
    atomic_init(&t->references, 1);
    t->directory = chosen->digest;
    t->list = *samples_digest(list);
    t->owners.nodes = d ? directory_nodes(d) : 1;
    t->owners.groups = d ? directory_groups(d) : 1;
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

static void name_nodes(const struct control *control, const struct directory *d, struct owner_table *t)
{
    t->me = d ? t->owners.nodes : 0;
    for (uint32_t v = 0; v < t->owners.nodes; v++) {
        snprintf(t->host[v], sizeof t->host[v], "%.*s", NODE_HOST - 1, d ? directory_node(d, v)->host : control->host);
        if (d && strcmp(directory_node(d, v)->id, control->config.mount->id) == 0)
            t->me = v;
    }
}

/* A file counts for the owner of its first stripe. */
static int fill(const struct control *control, const struct directory *d, struct samples *list, const struct asker *asker,
                struct owner_table *t)
{
    uint32_t count = samples_count(list);

    for (uint32_t i = 0; i < count; i++) {
        if (i % PLAN_SLICE == 0 && asker->gave_up && asker->gave_up(asker->user))
            return -EINTR;
        uint64_t extent = d ? extents_first(control->extents, samples_file(list, i)) : 0;
        for (uint32_t g = 0; g < t->owners.groups; g++)
            t->memory[(size_t)g * count + i] = d ? (uint16_t)directory_owner(d, g, extent) : 0;
    }
    return 0;
}

static bool fits(const struct owner_table *t, const struct digest *directory, struct samples *list)
{
    return t && memcmp(&t->directory, directory, sizeof *directory) == 0 &&
           memcmp(&t->list, samples_digest(list), sizeof t->list) == 0;
}

static struct owner_table *kept(struct owner_cache *cache, const struct digest *directory, struct samples *list)
{
    struct owner_table *t = NULL;

    pthread_mutex_lock(&cache->lock);
    if (fits(cache->last, directory, list))
        t = get(cache->last);
    pthread_mutex_unlock(&cache->lock);
    return t;
}

static void keep(struct owner_cache *cache, struct owner_table *table)
{
    pthread_mutex_lock(&cache->lock);
    struct owner_table *old = cache->last;
    cache->last = get(table);
    pthread_mutex_unlock(&cache->lock);
    owners_put(old);
}

int owners_find(struct control *control, struct samples *list, const struct digest *wanted, const struct asker *asker,
                struct owner_table **table, struct str *why)
{
    struct chosen chosen;
    int error = choose(control, wanted, &chosen, why);

    if (error)
        return error;
    struct owner_table *t = kept(&control->owners, &chosen.digest, list);
    if (!t) {
        t = allocate(&chosen, list);
        error = t ? 0 : -ENOMEM;
        if (!error) {
            name_nodes(control, chosen.directory, t);
            error = fill(control, chosen.directory, list, asker, t);
        }
        if (error == -ENOMEM)
            str_adds(why, "out of memory");
        if (error) {
            owners_put(t);
            t = NULL;
        } else
            keep(&control->owners, t);
    }
    chosen_fini(control, &chosen);
    *table = t;
    return error;
}
