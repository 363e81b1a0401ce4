#include "mpi/forming.h"

#include "fs/base/cleanup.h"
#include "fs/base/size.h"
#include "mpi/ask.h"
#include "mpi/broadcast.h"

#include <inttypes.h>
#include <string.h>

/* --- cached data --- */

struct holdings {
    uint64_t *mine;              /* this node's claims */
    struct holding *all;         /* by node number */
    struct claims_merged merged; /* holder: as in struct layout_input; NULL: nobody has cached anything */
};

static int gather_holdings(const struct members *m, struct holdings *h)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct holding mine = {0};
    int error = ask_holdings(m->home, &mine, &h->mine, &why);
    return agree_collect(m->nodes, error, &why, &mine, sizeof mine, &h->all);
}

static int make_holders(const struct members *m, struct claims_merged *merged)
{
    uint32_t groups = members_groups(m);
    uint64_t extents = members_mine(m)->extents, bytes = groups * extents * sizeof *merged->holder;
    merged->extents = extents;
    merged->holder = malloc(bytes + 1);
    merged->best = calloc(groups * claims_words(extents) + 1, sizeof *merged->best);
    int error = merged->holder && merged->best ? 0 : -ENOMEM;
    if (!error)
        memset(merged->holder, 0xff, bytes);
    return agree_on(m->nodes, error, NULL);
}

/* Nodes broadcast their claims one after the other. */
static int merge_claims(const struct members *m, struct holdings *h)
{
    size_t bytes = claims_words(members_mine(m)->extents) * sizeof *h->mine;
    CLEANUP_FREE uint64_t *others = malloc(bytes + 1);
    int error = agree_on(m->nodes, others ? 0 : -ENOMEM, NULL);
    for (uint32_t i = 0; !error && i < m->nodes->count; i++) {
        uint64_t *claims = i == m->nodes->me ? h->mine : others;
        if (h->all[i].cost == 0)
            continue;
        error = agree_share(m->nodes, i, claims, bytes);
        if (!error)
            claims_merge(&h->merged, m->nodes->count, members_groups(m), i, claims);
    }
    return error;
}

static int share_holdings(const struct members *m, struct holdings *h)
{
    bool any = false;
    for (uint32_t i = 0; i < m->nodes->count; i++)
        any |= h->all[i].cost > 0;
    if (!any)
        return 0;
    int error = make_holders(m, &h->merged);
    return error ? error : merge_claims(m, h);
}

/* --- one layout --- */

static int ask_for_layout(const struct members *m, const struct holdings *h, struct str *why)
{
    CLEANUP_FREE struct message_member *member = calloc(m->nodes->count, sizeof *member);
    if (!member)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->nodes->count; i++)
        member[i] = (struct message_member){.node = m->member[i].node, .holding = h->all[i]};
    struct ask_world world = {.me = m->nodes->me,
                              .nodes = m->nodes->count,
                              .groups = members_groups(m),
                              .member = member,
                              .holder = h->merged.holder};
    return ask_layout(m->home, &world, why);
}

static int compare_layouts(const struct members *m, const struct holdings *h)
{
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_FREE struct digest *all = NULL;
    int error = ask_for_layout(m, h, &why);
    error = agree_collect(m->nodes, error, &why, &m->home->layout, sizeof *all, &all);
    for (uint32_t i = 1; !error && i < m->nodes->count; i++)
        if (!digest_equal(&all[i], &all[0]))
            error = agree_refuse(m->nodes, "%s: it computed another layout than %s: this is a bug in dealfs",
                                 agree_name(m->nodes, i), agree_name(m->nodes, 0));
    return error;
}

static int agree_on_layout(const struct members *m)
{
    struct holdings h = {0};
    int error = gather_holdings(m, &h);
    if (!error)
        error = share_holdings(m, &h);
    if (!error)
        error = compare_layouts(m, &h);
    free(h.mine);
    free(h.all);
    free(h.merged.holder);
    free(h.merged.best);
    return error;
}

/* --- all steps --- */

static int exchange_bells(const struct nodes *nodes, struct doorbell **doorbell)
{
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_FREE struct wire_bell *all = NULL;
    struct wire_bell mine;
    int error = doorbell_create(nodes->me, nodes->world, nodes->secret, &mine, doorbell);
    if (error)
        str_addf(&why, "make a socket for wake-ups: %s", strerror(-error));
    error = agree_collect(nodes, error, &why, &mine, sizeof mine, &all);
    for (uint32_t i = 0; !error && i < nodes->count; i++)
        if (wire_bell_check(&all[i]))
            error = agree_refuse(nodes, "%s: its address is malformed", agree_name(nodes, i));
    return error ? error : agree_on(nodes, doorbell_connect(*doorbell, all, nodes->count), NULL);
}

int forming_begin(struct members *m, struct courier_helper *helper, struct doorbell **doorbell)
{
    int error = members_gather(m);
    if (!error)
        error = broadcast_catalog(m, helper);
    if (!error)
        error = members_gather_mounted(m);
    if (!error)
        error = agree_on_layout(m);
    return error ? error : exchange_bells(m->nodes, doorbell);
}

int forming_live(const struct members *m)
{
    CLEANUP_STR struct str why = STR_INIT;
    int error = agree_on(m->nodes, ask_live(m->home, &why), &why);
    if (error || m->nodes->me != 0)
        return error;
    for (uint32_t i = 0; i < m->nodes->count; i++) {
        char capacity[SIZE_TEXT];
        const struct world_node *node = &m->member[i].node;
        printf("node %" PRIu32 " %s %s\n", i, node->host, size_format(node->capacity, capacity, sizeof capacity));
    }
    printf("ready\n");
    fflush(stdout);
    return 0;
}
