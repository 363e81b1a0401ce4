#include "mpi/members.h"

#include "fs/base/cleanup.h"
#include "fs/catalog/catalog.h"
#include "mpi/ask.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

/* Versions digest of the catalog that an unmounted node has cached; zeros: it has none that it can use. */
static struct digest kept_versions(const char *state, bool acls)
{
    char path[PATH_MAX];
    struct catalog *c;
    struct digest versions = {{0}};
    int n = snprintf(path, sizeof path, "%s/catalog", state);
    if (n < (int)sizeof path && !catalog_open(path, &c)) {
        if (!acls || catalog_notes(c)->acls)
            versions = *catalog_versions(c);
        catalog_close(c);
    }
    return versions;
}

static struct wire_member describe_node(const struct members *m)
{
    const struct message_welcome *w = &m->home->welcome;
    const struct arguments *a = m->arguments;
    struct wire_member mine = {.magic = WIRE_MAGIC,
                               .state = w->waiting ? MEMBER_WAITING : MEMBER_LIVE,
                               .nodes = (uint32_t)a->nodes,
                               .groups = (uint32_t)a->groups,
                               .scans = a->scan,
                               .resize = w->resize,
                               .quality = w->quality};
    if (m->home->socket < 0) {
        mine.state = MEMBER_UNMOUNTED;
        mine.resize = (uint32_t)a->resize;
        mine.quality = (uint32_t)a->quality;
        mine.versions = kept_versions(a->state, a->acls);
        return mine;
    }
    memcpy(mine.node.id, w->node.id, strnlen(w->node.id, NODE_ID - 1));
    memcpy(mine.node.host, w->node.host, strnlen(w->node.host, NODE_HOST - 1));
    mine.node.capacity = w->node.capacity;
    mine.catalog = w->catalog;
    mine.versions = w->versions;
    mine.options = w->options;
    mine.extents = w->extents;
    mine.peer_timeout = a->timeout ? a->timeout : w->peer_timeout;
    return mine;
}

static int gather_members(struct members *m, int error, const struct str *why)
{
    struct wire_member mine = describe_node(m);
    free(steal_pointer(m->member));
    error = agree_collect(m->nodes, error, why, &mine, sizeof mine, &m->member);
    for (uint32_t i = 0; !error && i < m->nodes->count; i++)
        if (wire_member_check(&m->member[i]))
            error = agree_refuse(m->nodes, "%s: its description of itself is malformed", agree_name(m->nodes, i));
    return error;
}

/* --- checks before mounting --- */

/* A launcher without MPI support would start several couriers that each form a world of one. */
static int check_launcher(const struct nodes *nodes, struct str *why)
{
    /* All processes of a batch job see SLURM_NTASKS; the step's variable exists only in processes of srun. */
    static const char *const sizes[] = {"SLURM_STEP_NUM_TASKS", "PMI_SIZE", "MPI_LOCALNRANKS", "PALS_SIZE"};
    if (nodes->count != 1 || getenv("OMPI_COMM_WORLD_SIZE"))
        return 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *text = getenv(sizes[i]);
        long size = text ? strtol(text, NULL, 10) : 0;
        if (size <= 1)
            continue;
        return str_fail(
            why, -EPROTO,
            "the launcher started %ld processes (%s), but each is alone, because it does not use PMIx with Open "
            "MPI: use mpirun, or srun --mpi=pmix",
            size, sizes[i]);
    }
    return 0;
}

static const char *resize_text(const struct wire_member *m, char text[64])
{
    if (m->resize)
        snprintf(text, 64, "with resize=%" PRIu32 ",quality=%" PRIu32, m->resize, m->quality);
    return m->resize ? text : "without resize=";
}

/* Nodes with different options would have different bytes for the same files. */
static int check_resize(const struct members *m)
{
    const struct wire_member *first = &m->member[0];
    for (uint32_t i = 1; i < m->nodes->count; i++) {
        const struct wire_member *it = &m->member[i];
        char its[64], ours[64];
        if (it->resize != first->resize || it->quality != first->quality)
            return agree_refuse(m->nodes, "%s: its mount is %s, that of %s %s: unmount one of them",
                                agree_name(m->nodes, i), resize_text(it, its), agree_name(m->nodes, 0),
                                resize_text(first, ours));
    }
    return 0;
}

static int check_told(const struct members *m)
{
    uint32_t groups = members_groups(m);
    for (uint32_t i = 0; i < m->nodes->count; i++) {
        const struct wire_member *it = &m->member[i];
        if (it->nodes && it->nodes != m->nodes->count)
            return agree_refuse(m->nodes, "%s: it requires nodes=%" PRIu32 ", but the world has %" PRIu32 " nodes",
                                agree_name(m->nodes, i), it->nodes, m->nodes->count);
        if (it->groups && it->groups != groups)
            return agree_refuse(m->nodes, "%s: it has groups=%" PRIu32 ", other nodes groups=%" PRIu32,
                                agree_name(m->nodes, i), it->groups, groups);
    }
    if (groups > m->nodes->count)
        return agree_refuse(m->nodes, "groups=%" PRIu32 ": more groups than nodes (%" PRIu32 ")", groups,
                            m->nodes->count);
    if (groups > GROUPS_MOST)
        return agree_refuse(m->nodes, "groups=%" PRIu32 ": a world has at most %d groups", groups, GROUPS_MOST);
    return check_resize(m);
}

int members_gather(struct members *m)
{
    CLEANUP_STR struct str why = STR_INIT;
    int error = check_launcher(m->nodes, &why);
    if (!error && !m->arguments->mount)
        error = ask_hello(m->home, &why);
    error = gather_members(m, error, &why);
    return error ? error : check_told(m);
}

/* --- checks when mounted --- */

static int check_mounts(const struct members *m)
{
    const struct wire_member *first = &m->member[0];
    for (uint32_t i = 1; i < m->nodes->count; i++) {
        const struct wire_member *it = &m->member[i];
        if (!digest_equal(&it->catalog, &first->catalog) || !digest_equal(&it->versions, &first->versions) ||
            it->extents != first->extents)
            return agree_refuse(m->nodes, "%s: its catalog differs from that of %s", agree_name(m->nodes, i),
                                agree_name(m->nodes, 0));
        if (it->options != first->options)
            return agree_refuse(m->nodes, "%s: its mount options differ from those of %s where they must be the same",
                                agree_name(m->nodes, i), agree_name(m->nodes, 0));
    }
    return 0;
}

/* Also if nothing is cached yet: otherwise the world would form once, and never again. */
static int check_size(const struct members *m)
{
    uint64_t extents = members_mine(m)->extents, groups = members_groups(m);
    if (extents <= MESSAGE_HOLDERS_MOST / groups)
        return 0;
    return agree_refuse(m->nodes,
                        "the dataset has %" PRIu64 " extents, but a world of %" PRIu64 " groups can have only %" PRIu64
                        ": use fewer groups or larger files",
                        extents, groups, (uint64_t)MESSAGE_HOLDERS_MOST / groups);
}

struct member_id {
    const char *id;
    uint32_t node;
};

static int by_id(const void *a, const void *b)
{
    const struct member_id *x = a, *y = b;
    int order = strcmp(x->id, y->id);
    return order ? order : (x->node > y->node) - (x->node < y->node);
}

static int check_ids(const struct members *m)
{
    CLEANUP_FREE struct member_id *all = calloc(m->nodes->count, sizeof *all);
    int error = agree_on(m->nodes, all ? 0 : -ENOMEM, NULL);
    if (error)
        return error;
    for (uint32_t i = 0; i < m->nodes->count; i++)
        all[i] = (struct member_id){m->member[i].node.id, i};
    qsort(all, m->nodes->count, sizeof *all, by_id);
    for (uint32_t i = 1; i < m->nodes->count; i++)
        if (strcmp(all[i].id, all[i - 1].id) == 0)
            return agree_refuse(m->nodes,
                                "%s: it has the same id as %s (%s): one state directory for two nodes, or a copy",
                                agree_name(m->nodes, all[i].node), agree_name(m->nodes, all[i - 1].node), all[i].id);
    return 0;
}

int members_gather_mounted(struct members *m)
{
    int error = gather_members(m, 0, NULL);
    if (!error)
        error = check_mounts(m);
    if (!error)
        error = check_size(m);
    return error ? error : check_ids(m);
}

void members_fini(struct members *m)
{
    free(steal_pointer(m->member));
}

const struct wire_member *members_mine(const struct members *m)
{
    return &m->member[m->nodes->me];
}

uint32_t members_groups(const struct members *m)
{
    for (uint32_t i = 0; i < m->nodes->count; i++)
        if (m->member[i].groups)
            return m->member[i].groups;
    return 1;
}

uint64_t members_timeout(const struct members *m)
{
    uint64_t shortest = m->member[0].peer_timeout;
    for (uint32_t i = 1; i < m->nodes->count; i++)
        if (m->member[i].peer_timeout < shortest)
            shortest = m->member[i].peer_timeout;
    return shortest;
}
