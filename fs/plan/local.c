/* Lists of nodes, of which their ranks take in turn. */
#include "fs/plan/local.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <stdbool.h>

struct local {
    const struct batches *batches;
    const struct placement *placement;
    const struct owners *owners;
    uint64_t *first; /* by node, of nodes + 1: its list is entry[first[v]] … */
    uint32_t *entry;
    uint32_t *skip;    /* by node: entries of its list that are skipped */
    uint32_t *need;    /* by node: entries that its ranks read, skipped ones included */
    uint32_t *own;     /* by node: entries of the list that it owns; while counting: that it could have */
    uint32_t *lacks;   /* by node: entries of the list that nobody owns; while filling: that are still to come */
    uint32_t *lacking; /* nodes whose `lacks` is not 0, while filling */
    uint32_t nobodys;  /* entries of the order */
    uint32_t unread;
};

void local_destroy(struct local *local)
{
    int saved = errno;

    if (!local)
        return;
    free(local->first);
    free(local->entry);
    free(local->skip);
    free(local->need);
    free(local->own);
    free(local->lacks);
    free(local->lacking);
    free(local);
    errno = saved;
}

static void set_needs(struct local *l)
{
    const struct placement *p = l->placement;
    const struct batches *b = l->batches;

    for (uint32_t v = 0; v < p->nodes; v++) {
        l->skip[v] = (uint32_t)((uint64_t)b->skip * (p->first[v + 1] - p->first[v]) / p->ranks);
        l->need[v] = l->skip[v];
        for (uint32_t s = p->first[v]; s < p->first[v + 1]; s++)
            l->need[v] += batches_share(b->total, p->ranks, p->rank[s]);
    }
}

static int local_count(struct local *l, const struct plan_stop *stop)
{
    const struct batches *b = l->batches;
    const struct owners *o = l->owners;

    for (uint32_t i = 0; i < b->count; i++) {
        bool owned = false;
        if (i % PLAN_SLICE == 0 && plan_stopped(stop))
            return -EINTR;
        for (uint32_t g = 0; g < o->groups; g++) {
            uint32_t v = o->of[g][b->order[i]];
            if (v < o->nodes) {
                owned = true;
                l->own[v]++;
            }
        }
        l->nobodys += !owned;
    }
    return 0;
}

/* How many of nobody's each node gets: in turn, as the filling will. */
static void share_nobodys(struct local *l)
{
    uint32_t nodes = l->placement->nodes, lacking = 0, left = l->nobodys;

    for (uint32_t v = 0; v < nodes; v++) {
        if (l->own[v] > l->need[v])
            l->own[v] = l->need[v];
        l->lacks[v] = 0;
        if (l->own[v] < l->need[v])
            l->lacking[lacking++] = v;
    }
    while (left > 0 && lacking > 0) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < lacking; i++) {
            uint32_t v = l->lacking[i];
            l->lacks[v] += left > 0;
            left -= left > 0;
            if (l->own[v] + l->lacks[v] < l->need[v])
                l->lacking[kept++] = v;
        }
        lacking = kept;
    }
    l->first[0] = 0;
    for (uint32_t v = 0; v < nodes; v++)
        l->first[v + 1] = l->first[v] + l->own[v] + l->lacks[v];
}

/* While filling `own` and `lacks` count down; `at` is where a node's next entry goes. */
struct local_filling {
    struct local *local;
    uint64_t *at;
    uint32_t turn, lacking;
};

static bool fill_nobodys(struct local_filling *f, uint32_t sample)
{
    struct local *l = f->local;

    if (f->lacking == 0)
        return false;
    if (f->turn >= f->lacking)
        f->turn = 0;
    uint32_t v = l->lacking[f->turn];
    l->entry[f->at[v]++] = sample;
    if (--l->lacks[v] == 0)
        l->lacking[f->turn] = l->lacking[--f->lacking];
    else
        f->turn++;
    return true;
}

static int local_fill(struct local *l, uint64_t *at, const struct plan_stop *stop)
{
    const struct batches *b = l->batches;
    const struct owners *o = l->owners;
    struct local_filling f = {.local = l, .at = at};

    for (uint32_t v = 0; v < l->placement->nodes; v++) {
        at[v] = l->first[v];
        if (l->lacks[v])
            l->lacking[f.lacking++] = v;
    }
    for (uint32_t i = 0; i < b->count; i++) {
        bool owned = false, used = false;
        if (i % PLAN_SLICE == 0 && plan_stopped(stop))
            return -EINTR;
        for (uint32_t g = 0; g < o->groups; g++) {
            uint32_t v = o->of[g][b->order[i]];
            owned |= v < o->nodes;
            if (v < o->nodes && l->own[v] > 0) {
                l->own[v]--;
                l->entry[at[v]++] = b->order[i];
                used = true;
            }
        }
        l->unread += owned ? !used : !fill_nobodys(&f, b->order[i]);
    }
    return 0;
}

static int local_make(struct local *l, const struct plan_stop *stop)
{
    uint32_t nodes = l->placement->nodes;
    CLEANUP_FREE uint64_t *at = calloc(nodes, sizeof *at);

    l->first = calloc(nodes + 1, sizeof *l->first);
    l->skip = calloc(nodes, sizeof *l->skip);
    l->need = calloc(nodes, sizeof *l->need);
    l->own = calloc(nodes, sizeof *l->own);
    l->lacks = calloc(nodes, sizeof *l->lacks);
    l->lacking = calloc(nodes, sizeof *l->lacking);
    if (!at || !l->first || !l->skip || !l->need || !l->own || !l->lacks || !l->lacking)
        return -ENOMEM;
    set_needs(l);
    int error = local_count(l, stop);
    if (error)
        return error;
    share_nobodys(l);
    l->entry = malloc((l->first[nodes] + 1) * sizeof *l->entry);
    return l->entry ? local_fill(l, at, stop) : -ENOMEM;
}

int local_create(const struct batches *batches, const struct placement *placement, const struct owners *owners,
                 const struct plan_stop *stop, struct local **local)
{
    struct local *l = calloc(1, sizeof *l);

    if (!l)
        return -ENOMEM;
    l->batches = batches;
    l->placement = placement;
    l->owners = owners;
    int error = local_make(l, stop);
    if (error) {
        local_destroy(l);
        return error;
    }
    *local = l;
    return 0;
}

/* Entry k of what the ranks of a node read. */
static uint32_t entry_at(const struct local *l, uint32_t node, uint64_t k)
{
    const struct batches *b = l->batches;
    uint64_t length = l->first[node + 1] - l->first[node];

    if (length > 0)
        return l->entry[l->first[node] + k % length];
    return b->order[((uint64_t)l->placement->first[node] * b->count / l->placement->ranks + k) % b->count];
}

void local_deal(const struct local *l, uint64_t step, uint32_t *out)
{
    const struct placement *p = l->placement;
    uint32_t n = batches_length(l->batches, step);
    uint64_t before = step * (l->batches->size / p->ranks);

    for (uint32_t v = 0; v < p->nodes; v++)
        for (uint32_t s = p->first[v]; s < p->first[v + 1]; s++) {
            uint32_t ranks = p->first[v + 1] - p->first[v], place = batches_place(n, p->ranks, p->rank[s]);
            uint32_t share = batches_share(n, p->ranks, p->rank[s]);
            for (uint32_t i = 0; i < share; i++)
                out[place + i] = entry_at(l, v, l->skip[v] + (before + i) * ranks + (s - p->first[v]));
        }
}

uint32_t local_unread(const struct local *l)
{
    return l->unread;
}
