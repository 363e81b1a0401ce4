/* Deals by locality, in two passes over a batch: count what each node owns and compute the transfers, then hand out by
 * position.
 *
 *   home[i]      the owner of sample i; with several groups: as chosen by choose.c; for a repeat: its first user
 *   leg[v]       where the next sample of node v goes: to v until its share is used up, then along its transfers
 *   seat[v]      the ranks of node v, served in turn */
#include "fs/plan/deal.h"
#include "fs/plan/deal-state.h"

#include "fs/base/cleanup.h"
#include "fs/plan/batches.h"

#include <errno.h>
#include <string.h>

void deal_destroy(struct deal *deal)
{
    if (!deal)
        return;
    balance_fini(&deal->balance);
    uses_fini(&deal->uses);
    free(deal->home);
    free(deal->count);
    free(deal->target);
    free(deal->leg);
    free(deal->following);
    free(deal->seat);
    free(deal->to);
    free(deal);
}

int deal_create(const struct placement *placement, const struct owners *owners, uint32_t longest, uint32_t echoed,
                bool positions, struct deal **deal)
{
    struct deal *d = calloc(1, sizeof *d);
    uint32_t nodes = placement->nodes;
    if (!d)
        return -ENOMEM;
    d->placement = placement;
    d->owners = owners;
    d->positions = positions;
    d->home = malloc((longest + 1ul) * sizeof *d->home);
    d->count = calloc(nodes + 1, sizeof *d->count);
    d->target = calloc(nodes + 1, sizeof *d->target);
    d->leg = calloc(nodes + 1, sizeof *d->leg);
    d->following = calloc(2 * (size_t)nodes, sizeof *d->following);
    d->seat = calloc(nodes, sizeof *d->seat);
    d->to = calloc(placement->ranks, sizeof *d->to);
    if (balance_init(&d->balance, nodes) || (echoed && uses_init(&d->uses, echoed)) || !d->home || !d->count ||
        !d->target || !d->leg || !d->following || !d->seat || !d->to) {
        deal_destroy(d);
        return -ENOMEM;
    }
    *deal = d;
    return 0;
}

const uint16_t *deal_first(const struct deal *d)
{
    return d->uses.first;
}

void deal_begin(struct deal *d)
{
    if (d->uses.first)
        uses_forget(&d->uses);
}

/* Each node's target: the sum of its ranks' shares. */
static void set_targets(struct deal *d, uint32_t n)
{
    const struct placement *p = d->placement;
    uint32_t base = n / p->ranks, odd = n % p->ranks;
    for (uint32_t v = 0; v < p->nodes; v++) {
        uint32_t from = p->first[v], to = p->first[v + 1];
        d->target[v] = base * (to - from);
        for (; odd && from < to && p->rank[from] < odd; from++)
            d->target[v]++;
    }
    memset(d->count, 0, (p->nodes + 1) * sizeof *d->count);
}

/* Set the home of repeats; 0 for the others. */
static void pin_repeats(struct deal *d, const uint32_t *batch, uint32_t n, struct deal_tally *tally)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = d->uses.first[batch[i]];
        d->home[i] = first != NOT_USED ? (uint16_t)(first | STAYS) : 0;
        tally->duplicates += uses_mark(&d->uses, batch[i]);
    }
}

/* A sample that is twice in the batch also stays with its owner; without an owner, both go to one node. */
static void pin_duplicates(struct deal *d, const uint32_t *batch, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (d->uses.here[batch[i]] > 1)
            d->home[i] |= STAYS;
    uses_unmark(&d->uses, batch, n);
}

/* With one group there is nothing to choose. */
static void look_up(struct deal *d, const uint32_t *batch, uint32_t n)
{
    const uint16_t *owner = d->owners->of[0];
    uint32_t nodes = d->owners->nodes;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = owner[batch[i]];
        v = v < nodes ? v : nodes;
        d->home[i] = (uint16_t)v;
        d->count[v]++;
    }
}

static void look_up_echoed(struct deal *d, const uint32_t *batch, uint32_t n)
{
    const uint16_t *owner = d->owners->of[0];
    uint32_t nodes = d->owners->nodes;
    for (uint32_t i = 0; i < n; i++) {
        if (!(d->home[i] & STAYS)) {
            uint32_t v = owner[batch[i]];
            d->home[i] = (uint16_t)(v < nodes ? v : nodes);
        }
        d->count[d->home[i] & ~STAYS]++;
    }
}

/* Append each giver's transfers to what it keeps. */
static void lay_legs(struct deal *d)
{
    const struct balance *b = &d->balance;
    for (uint32_t v = 0; v < b->nodes; v++) {
        uint32_t kept = d->count[v] < d->target[v] ? d->count[v] : d->target[v];
        d->leg[v] = (struct leg){.to = (uint16_t)v, .left = kept, .next = NO_LEG};
    }
    d->leg[b->nodes] = (struct leg){.next = NO_LEG};
    for (uint32_t t = b->transfers; t-- > 0;) {
        struct leg *leg = &d->leg[b->transfer[t].from];
        d->following[t] = leg->next;
        leg->next = t;
    }
}

static void next_leg(struct deal *d, struct leg *leg)
{
    const struct transfer *t = &d->balance.transfer[leg->next];
    *leg = (struct leg){.to = (uint16_t)t->to, .left = t->count, .next = d->following[leg->next]};
}

static void take_seats(struct deal *d, uint32_t n, uint32_t *out)
{
    const struct placement *p = d->placement;
    for (uint32_t v = 0; v < p->nodes; v++)
        d->seat[v] = (struct seat){.at = p->first[v], .from = p->first[v], .to = p->first[v + 1]};
    for (uint32_t s = 0; s < p->ranks; s++)
        d->to[s] = out + batches_place(n, p->ranks, p->rank[s]);
}

/* Does this node own it, and does any node? */
static bool is_local(const struct owners *owners, uint32_t sample, uint32_t node, bool *owned)
{
    *owned = false;
    for (uint32_t g = 0; g < owners->groups; g++) {
        uint32_t v = owners->of[g][sample];
        *owned |= v < owners->nodes;
        if (v == node)
            return true;
    }
    return false;
}

/* Count a sample that was dealt to another node than its home: it may be another owner. */
static bool count_elsewhere(const struct deal *d, uint32_t sample, uint32_t node, const struct deal_watch *watch,
                            struct deal_tally *tally)
{
    bool owned;
    if (is_local(d->owners, sample, node, &owned))
        return false;
    tally->moved += owned;
    tally->unowned += !owned;
    if (watch)
        watch->elsewhere(watch->user, sample, owned);
    return true;
}

/* The same for an echoed order, for each sample. */
static void count_use(struct deal *d, uint32_t sample, uint32_t node, const struct deal_watch *watch,
                      struct deal_tally *tally)
{
    uint16_t *first = &d->uses.first[sample];
    bool elsewhere = *first != node && count_elsewhere(d, sample, node, watch, tally);
    if (*first != NOT_USED) {
        tally->repeats++;
        tally->refetched += elsewhere;
        return;
    }
    *first = (uint16_t)node;
    if (watch)
        watch->fresh(watch->user, sample);
}

/* The node that the next sample of this home goes to. */
static uint32_t take_leg(struct deal *d, uint32_t home)
{
    struct leg *leg = &d->leg[home];
    while (leg->left == 0)
        next_leg(d, leg);
    leg->left--;
    return leg->to;
}

/* The same, at one of its ranks. */
static uint32_t hand_one(struct deal *d, const uint32_t *batch, uint32_t i, uint32_t home)
{
    uint32_t node = take_leg(d, home);
    struct seat *seat = &d->seat[node];
    *d->to[seat->at]++ = d->positions ? i : batch[i];
    if (++seat->at == seat->to)
        seat->at = seat->from;
    return node;
}

static void hand_out(struct deal *d, const uint32_t *batch, uint32_t n, const struct deal_watch *watch,
                     struct deal_tally *tally)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t to = hand_one(d, batch, i, d->home[i]);
        if (to != d->home[i] && !d->positions)
            count_elsewhere(d, batch[i], to, watch, tally);
    }
}

/* Samples that must stay are handed out first, so that their node keeps them. */
static void hand_out_echoed(struct deal *d, const uint32_t *batch, uint32_t n, const struct deal_watch *watch,
                            struct deal_tally *tally)
{
    for (int turn = 0; turn < 2; turn++)
        for (uint32_t i = 0; i < n; i++)
            if ((d->home[i] < STAYS) == turn) {
                uint32_t to = hand_one(d, batch, i, (uint32_t)d->home[i] & ~STAYS);
                if (!d->positions)
                    count_use(d, batch[i], to, watch, tally);
            }
}

void deal_locality(struct deal *d, const uint32_t *batch, uint32_t n, uint32_t *out, const struct deal_watch *watch,
                   struct deal_tally *tally)
{
    bool echoed = d->uses.first != NULL;
    *tally = (struct deal_tally){0};
    set_targets(d, n);
    if (echoed)
        pin_repeats(d, batch, n, tally);
    if (d->owners->groups > 1)
        choose_owners(d, batch, n);
    else if (echoed)
        look_up_echoed(d, batch, n);
    else
        look_up(d, batch, n);
    if (echoed)
        pin_duplicates(d, batch, n);
    balance_run(&d->balance, d->count, d->target);
    lay_legs(d);
    take_seats(d, n, out);
    tally->transfers = d->balance.transfers - d->balance.first;
    (echoed ? hand_out_echoed : hand_out)(d, batch, n, watch, tally);
    tally->local = n - tally->unowned - tally->moved;
}

void deal_merged(struct deal *d, const uint32_t *batch, uint32_t n, uint32_t *out)
{
    uint32_t nodes = d->placement->nodes;
    for (uint32_t v = 0; v < nodes; v++) {
        d->target[v] = n / nodes + (v < n % nodes);
        d->seat[v].at = v;
    }
    memset(d->count, 0, (nodes + 1) * sizeof *d->count);
    if (d->owners->groups > 1)
        choose_owners(d, batch, n);
    else
        look_up(d, batch, n);
    balance_run(&d->balance, d->count, d->target);
    lay_legs(d);
    for (uint32_t i = 0; i < n; i++) {
        struct seat *seat = &d->seat[take_leg(d, d->home[i])];
        out[seat->at] = batch[i];
        seat->at += nodes;
    }
}

void deal_regular(struct deal *d, const uint32_t *batch, uint32_t n, uint32_t *out)
{
    uint32_t ranks = d->placement->ranks;
    for (uint32_t r = 0; r < ranks && r < n; r++)
        for (uint32_t i = r; i < n; i += ranks)
            *out++ = d->positions ? i : batch[i];
}

void deal_count(struct deal *d, const uint32_t *out, const uint16_t *owner, uint32_t n, const struct deal_watch *watch,
                struct deal_tally *tally)
{
    const struct placement *p = d->placement;
    bool echoed = d->uses.first != NULL;
    uint32_t i = 0;
    *tally = (struct deal_tally){0};
    for (uint32_t r = 0; r < p->ranks; r++)
        for (uint32_t end = i + batches_share(n, p->ranks, r); i < end; i++) {
            if (echoed) {
                tally->duplicates += uses_mark(&d->uses, out[i]);
                count_use(d, out[i], p->node[r], watch, tally);
            } else if (!owner || owner[i] != p->node[r]) {
                count_elsewhere(d, out[i], p->node[r], watch, tally);
            }
        }
    if (echoed)
        uses_unmark(&d->uses, out, n);
    tally->local = n - tally->unowned - tally->moved;
}
