/* The steps of a join; each ends in one that all take together, so that no node is left waiting for one that failed. */
#include "mpi/join.h"

#include "fs/base/cleanup.h"
#include "fs/base/log.h"
#include "fs/base/size.h"
#include "mpi/catalog.h"
#include "mpi/environment.h"

#include <inttypes.h>
#include <string.h>

#define ATTACH_PATIENCE UINT64_C(10000000000)

static int no_memory(const struct nodes *nodes, const void *p)
{
    return agree_on(nodes, p ? 0 : -ENOMEM, NULL);
}

/* --- who is there --- */

static void describe(struct join *j)
{
    const struct attach_welcome *w = &j->link->welcome;
    struct wire_member *m = &j->mine;
    *m = (struct wire_member){
        .magic = WIRE_MAGIC, .nodes = j->options->nodes, .groups = j->options->groups, .scans = j->options->scan};
    if (j->link->socket < 0) {
        m->state = MEMBER_UNMOUNTED;
        m->catalog = catalog_kept(j->options->state);
        return;
    }
    m->state = w->waiting ? MEMBER_WAITING : MEMBER_LIVE;
    memcpy(m->node.id, w->node.id, strnlen(w->node.id, NODE_ID - 1));
    memcpy(m->node.host, w->node.host, strnlen(w->node.host, NODE_HOST - 1));
    m->node.capacity = w->node.capacity;
    m->catalog = w->catalog;
    m->options = w->options;
    m->extents = w->extents;
    m->peer_timeout = j->options->timeout ? j->options->timeout : w->peer_timeout;
}

static int gather(struct join *j)
{
    describe(j);
    int error = agree_gather(j->nodes, &j->mine, sizeof j->mine, j->member);
    for (uint32_t i = 0; !error && i < j->nodes->count; i++)
        if (wire_member_check(&j->member[i]))
            error = agree_refuse(j->nodes, "%s: what it says of itself makes no sense", agree_name(j->nodes, i));
    return error;
}

static int find_mount(struct join *j)
{
    CLEANUP_STR struct str why = STR_INIT;
    int error = environment_check_size((int)j->nodes->count, &why);
    if (!error && !j->options->mount)
        error = link_open(j->link, ATTACH_PATIENCE, &why);
    return agree_on(j->nodes, error, &why);
}

/* --- do they fit together --- */

/* As the first who was told says. */
static uint32_t groups_of(const struct join *j)
{
    for (uint32_t i = 0; i < j->nodes->count; i++)
        if (j->member[i].groups)
            return j->member[i].groups;
    return 1;
}

static int check_told(const struct join *j)
{
    for (uint32_t i = 0; i < j->nodes->count; i++) {
        const struct wire_member *m = &j->member[i];
        if (m->nodes && m->nodes != j->nodes->count)
            return agree_refuse(j->nodes, "%s: nodes=%" PRIu32 " was asked for, and there are %" PRIu32,
                                agree_name(j->nodes, i), m->nodes, j->nodes->count);
        if (m->groups && m->groups != groups_of(j))
            return agree_refuse(j->nodes, "%s: groups=%" PRIu32 ", and others have groups=%" PRIu32,
                                agree_name(j->nodes, i), m->groups, groups_of(j));
    }
    if (groups_of(j) > j->nodes->count)
        return agree_refuse(j->nodes, "groups=%" PRIu32 " are more than there are nodes: %" PRIu32, groups_of(j),
                            j->nodes->count);
    return 0;
}

static int check_mounts(const struct join *j)
{
    const struct wire_member *first = &j->member[0];
    for (uint32_t i = 1; i < j->nodes->count; i++) {
        const struct wire_member *m = &j->member[i];
        if (memcmp(&m->catalog, &first->catalog, sizeof m->catalog) != 0 || m->extents != first->extents)
            return agree_refuse(j->nodes, "%s: its catalog is not that of %s", agree_name(j->nodes, i),
                                agree_name(j->nodes, 0));
        if (m->options != first->options)
            return agree_refuse(j->nodes,
                                "%s: its mount options that must be the same on all nodes are not those of %s",
                                agree_name(j->nodes, i), agree_name(j->nodes, 0));
    }
    return 0;
}

struct named {
    const char *id;
    uint32_t node;
};

static int by_id(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->id, y->id);
    return order ? order : (x->node > y->node) - (x->node < y->node);
}

static int check_ids(const struct join *j)
{
    CLEANUP_FREE struct named *all = calloc(j->nodes->count, sizeof *all);
    int error = no_memory(j->nodes, all);
    if (error)
        return error;
    for (uint32_t i = 0; i < j->nodes->count; i++)
        all[i] = (struct named){j->member[i].node.id, i};
    qsort(all, j->nodes->count, sizeof *all, by_id);
    for (uint32_t i = 1; i < j->nodes->count; i++)
        if (strcmp(all[i].id, all[i - 1].id) == 0)
            return agree_refuse(j->nodes,
                                "%s: it has the same id as %s (%s): one state directory for two nodes, or a copy",
                                agree_name(j->nodes, all[i].node), agree_name(j->nodes, all[i - 1].node), all[i].id);
    return 0;
}

static void choose_timeout(struct join *j)
{
    j->timeout = j->member[0].peer_timeout;
    for (uint32_t i = 1; i < j->nodes->count; i++)
        if (j->member[i].peer_timeout < j->timeout)
            j->timeout = j->member[i].peer_timeout;
}

/* --- what they hold --- */

struct holdings {
    uint64_t *mine;      /* a bitmap */
    struct holding *all; /* by number */
    uint16_t *holder;    /* as in struct directory_input; NULL: nobody holds anything */
};

static void holdings_fini(struct holdings *h)
{
    free(h->mine);
    free(h->all);
    free(h->holder);
}

static size_t bitmap_bytes(const struct join *j)
{
    return (j->mine.extents + 63) / 64 * sizeof(uint64_t);
}

static int ask_holdings(struct join *j, struct holdings *h)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct holding mine = {0};
    h->all = calloc(j->nodes->count, sizeof *h->all);
    int error = h->all ? link_holdings(j->link, &mine, &h->mine, &why) : -ENOMEM;
    error = agree_on(j->nodes, error, &why);
    return error ? error : agree_gather(j->nodes, &mine, sizeof mine, h->all);
}

static int make_holders(struct join *j, struct holdings *h)
{
    CLEANUP_STR struct str why = STR_INIT;
    uint64_t bytes = groups_of(j) * j->mine.extents * sizeof *h->holder;
    int error = 0;
    if (bytes > ATTACH_MOST / 2) {
        str_addf(&why, "%" PRIu32 " groups with %" PRIu64 " extents each are more than can be told a server",
                 groups_of(j), j->mine.extents);
        error = -E2BIG;
    } else if (!(h->holder = malloc(bytes + 1))) {
        error = -ENOMEM;
    } else {
        memset(h->holder, 0xff, bytes);
    }
    return agree_on(j->nodes, error, &why);
}

/* One bitmap after the other comes by; what stays is who holds an extent first. */
static int note_holders(struct join *j, struct holdings *h)
{
    size_t bytes = bitmap_bytes(j);
    CLEANUP_FREE uint64_t *others = malloc(bytes + 1);
    int error = no_memory(j->nodes, others);
    for (uint32_t i = 0; !error && i < j->nodes->count; i++) {
        uint64_t *bits = i == j->nodes->me ? h->mine : others;
        if (h->all[i].cost == 0)
            continue;
        error = agree_share(j->nodes, i, bits, bytes);
        if (!error)
            directory_note_held(h->holder, j->mine.extents, j->nodes->count, groups_of(j), i, bits);
    }
    return error;
}

static int share_holdings(struct join *j, struct holdings *h)
{
    bool any = false;
    for (uint32_t i = 0; i < j->nodes->count; i++)
        any |= h->all[i].cost > 0;
    int error = any ? make_holders(j, h) : 0;
    return error || !any ? error : note_holders(j, h);
}

/* --- one directory --- */

static int make_directory(struct join *j, const struct holdings *h)
{
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_FREE struct attach_member *member = calloc(j->nodes->count, sizeof *member);
    int error = no_memory(j->nodes, member);
    if (error)
        return error;
    for (uint32_t i = 0; i < j->nodes->count; i++)
        member[i] = (struct attach_member){.node = j->member[i].node, .holding = h->all[i]};
    error = link_world(j->link, j->nodes->me, j->nodes->count, groups_of(j), member, h->holder, &why);
    return agree_on(j->nodes, error, &why);
}

static int compare_directories(const struct join *j)
{
    CLEANUP_FREE struct digest *all = calloc(j->nodes->count, sizeof *all);
    int error = no_memory(j->nodes, all);
    if (!error)
        error = agree_gather(j->nodes, &j->link->directory, sizeof *all, all);
    for (uint32_t i = 1; !error && i < j->nodes->count; i++)
        if (memcmp(&all[i], &all[0], sizeof *all) != 0)
            error = agree_refuse(j->nodes, "%s: it computed another directory than %s; this is a fault of dealfs",
                                 agree_name(j->nodes, i), agree_name(j->nodes, 0));
    return error;
}

static int agree_on_directory(struct join *j)
{
    struct holdings h = {0};
    int error = ask_holdings(j, &h);
    if (!error)
        error = share_holdings(j, &h);
    if (!error)
        error = make_directory(j, &h);
    if (!error)
        error = compare_directories(j);
    holdings_fini(&h);
    return error;
}

/* --- bells --- */

static int exchange_bells(struct join *j)
{
    struct wire_bell mine;
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_FREE struct wire_bell *all = calloc(j->nodes->count, sizeof *all);
    int error = all ? doorbell_create(j->nodes->me, j->nodes->world, &mine, &j->doorbell) : -ENOMEM;
    if (error)
        str_addf(&why, "make a socket to be woken by: %s", strerror(-error));
    error = agree_on(j->nodes, error, &why);
    if (!error)
        error = agree_gather(j->nodes, &mine, sizeof mine, all);
    for (uint32_t i = 0; !error && i < j->nodes->count; i++)
        if (wire_bell_check(&all[i]))
            error = agree_refuse(j->nodes, "%s: its address makes no sense", agree_name(j->nodes, i));
    if (!error)
        error = agree_on(j->nodes, doorbell_connect(j->doorbell, all, j->nodes->count), NULL);
    return error;
}

/* --- all of it --- */

int join_form(struct join *j)
{
    j->member = calloc(j->nodes->count, sizeof *j->member);
    int error = no_memory(j->nodes, j->member);
    if (!error)
        error = find_mount(j);
    if (!error)
        error = gather(j);
    if (!error)
        error = check_told(j);
    if (!error)
        error = catalog_settle(j);
    if (!error)
        error = gather(j);
    if (!error)
        error = check_mounts(j);
    if (!error)
        error = check_ids(j);
    if (!error)
        error = agree_on_directory(j);
    if (!error)
        error = exchange_bells(j);
    if (!error)
        choose_timeout(j);
    return error;
}

static void announce(const struct join *j)
{
    for (uint32_t i = 0; i < j->nodes->count; i++) {
        char capacity[SIZE_TEXT];
        const struct wire_member *m = &j->member[i];
        printf("node %" PRIu32 " %s %s\n", i, m->node.host, size_format(m->node.capacity, capacity, sizeof capacity));
    }
    printf("ready\n");
    fflush(stdout);
}

int join_live(struct join *j)
{
    CLEANUP_STR struct str why = STR_INIT;
    int error = agree_on(j->nodes, link_live(j->link, &why), &why);
    if (!error && j->nodes->me == 0)
        announce(j);
    return error;
}

void join_fini(struct join *j)
{
    free(j->member);
    j->member = NULL;
    doorbell_destroy(j->doorbell);
    j->doorbell = NULL;
}
