/* The pipeline assembled: what can be prepared is made by plan_create, then the steps are dealt one by one. */
#include "fs/plan/epoch-plan.h"

#include "fs/base/cleanup.h"
#include "fs/plan/local.h"
#include "fs/plan/order.h"
#include "fs/plan/uses.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lists and digests are little-endian");

struct plan {
    struct plan_input input;
    uint32_t *echoed; /* the order after echoing of examples; NULL: nothing is echoed */
    uint32_t *local;  /* the order of mode=local; NULL: another mode */
    struct batches batches;
    struct placement placement;
    struct deal *deal;
    struct echo_steps echo; /* of batches; `batch` NULL: each is used once */
    uint64_t steps;         /* echoes included */
};

void plan_destroy(struct plan *plan)
{
    int saved = errno;

    if (!plan)
        return;
    deal_destroy(plan->deal);
    placement_fini(&plan->placement);
    free(plan->echo.batch);
    free(plan->echoed);
    free(plan->local);
    free(plan);
    errno = saved;
}

/* As often as anything is echoed, at most. */
static uint64_t echoes_most(const struct plan_input *in, enum plan_echo_at at)
{
    return in->echo_at == at ? (in->echo.factor + (uint64_t)ECHO_ONE - 1) / ECHO_ONE : 1;
}

static bool is_echoed(const struct plan_input *in, enum plan_echo_at at)
{
    return in->echo.factor != ECHO_ONE && in->echo_at == at;
}

/* Of the sequence that is dealt: the tail may be filled up until ranks divide it. */
static uint64_t dealt_most(const struct plan_input *in)
{
    return in->count * echoes_most(in, ECHO_AT_EXAMPLE) + in->ranks;
}

uint64_t plan_entries_most(const struct plan_input *in)
{
    return dealt_most(in) * echoes_most(in, ECHO_AT_BATCH);
}

uint64_t plan_memory_most(const struct plan_input *in)
{
    enum { A_STEP = 10, A_RANK = 48, A_NODE = 192 }; /* bytes for each sample of the longest step, rank and node */
    uint64_t dealt = dealt_most(in), batch = (uint64_t)in->ranks * in->batch, longest = dealt < batch ? dealt : batch;
    uint64_t bytes = longest * A_STEP + (uint64_t)in->ranks * A_RANK + (uint64_t)in->owners.nodes * A_NODE;

    if (is_echoed(in, ECHO_AT_EXAMPLE))
        bytes += dealt * sizeof(uint32_t) + uses_bytes(in->samples);
    if (is_echoed(in, ECHO_AT_BATCH))
        bytes += (dealt / batch + 1) * (echoes_most(in, ECHO_AT_BATCH) * sizeof(uint32_t) + sizeof(bool));
    if (in->mode == PLAN_LOCAL)
        bytes += dealt * (sizeof(uint32_t) + sizeof(uint16_t));
    return bytes;
}

static int check_input(const struct plan_input *in, struct str *why)
{
    if (in->ranks == 0 || in->ranks > PLAN_RANKS_MOST) {
        str_addf(why, "ranks must be 1 to %d", PLAN_RANKS_MOST);
        return -ERANGE;
    }
    if (in->batch == 0) {
        str_adds(why, "batch must be 1 at least");
        return -ERANGE;
    }
    if (in->owners.nodes == 0 || in->owners.nodes > PLAN_NODES_MOST || in->owners.groups == 0 ||
        in->owners.groups > PLAN_GROUPS_MOST) {
        str_addf(why, "%" PRIu32 " nodes in %" PRIu32 " groups: at most %d in %d can be planned for", in->owners.nodes,
                 in->owners.groups, PLAN_NODES_MOST, PLAN_GROUPS_MOST);
        return -ERANGE;
    }
    if (in->echo.factor < ECHO_ONE || in->echo.factor > ECHO_MOST) {
        str_addf(why, "echo must be 1 to %d", ECHO_MOST / ECHO_ONE);
        return -ERANGE;
    }
    if (in->count > PLAN_ENTRIES_MOST) {
        str_addf(why, "the order has %" PRIu32 " entries; at most %u can be planned", in->count, PLAN_ENTRIES_MOST);
        return -E2BIG;
    }
    return 0;
}

static int place_ranks(struct plan *plan, struct str *why)
{
    const struct plan_input *in = &plan->input;
    int error = placement_init(&plan->placement, in->owners.nodes, in->ranks, in->node_of_rank);

    if (error == -EDOM)
        str_addf(why,
                 "%" PRIu32 " ranks cannot be divided evenly over %" PRIu32 " nodes: say with nodes= where each runs",
                 in->ranks, in->owners.nodes);
    if (error == -ERANGE)
        str_addf(why, "a rank is on a node that the world has not: its nodes are 0 to %" PRIu32, in->owners.nodes - 1);
    return error;
}

static int echo_order(struct plan *plan, const struct plan_stop *stop, struct str *why)
{
    struct plan_input *in = &plan->input;

    if (!is_echoed(in, ECHO_AT_EXAMPLE))
        return 0;
    int error = echo_examples(&in->echo, in->order, in->count, stop, &plan->echoed, &in->count);
    if (error == -E2BIG)
        str_addf(why, "the order with its echoes has more than %u entries", PLAN_ENTRIES_MOST);
    if (!error)
        in->order = plan->echoed;
    return error;
}

static int order_locally(struct plan *plan, const struct plan_stop *stop)
{
    struct plan_input *in = &plan->input;

    if (in->mode != PLAN_LOCAL)
        return 0;
    int error = local_order(&plan->placement, &in->owners, in->order, in->count, stop, &plan->local);
    if (!error)
        in->order = plan->local;
    return error;
}

static int cut_batches(struct plan *plan, struct str *why)
{
    const struct plan_input *in = &plan->input;
    uint64_t skip = is_echoed(in, ECHO_AT_BATCH) ? 0 : in->skip;
    int error = skip > in->count ? -ERANGE
                                 : batches_init(&plan->batches, in->order, in->count, (uint32_t)skip, in->ranks,
                                                in->batch, in->tail);

    if (error == -ERANGE)
        str_addf(why, "skip=%" PRIu64 " is past the end: there are %" PRIu32 " samples in the order", in->skip,
                 in->count);
    plan->steps = plan->batches.steps;
    return error;
}

/* What is skipped was used in whole steps: only so many are the same again. */
static int echo_steps(struct plan *plan, const struct plan_stop *stop, struct str *why)
{
    const struct plan_input *in = &plan->input;
    uint64_t size = plan->batches.size;

    if (!is_echoed(in, ECHO_AT_BATCH))
        return 0;
    if (in->skip % size) {
        str_addf(why, "skip=%" PRIu64 ": where batches are echoed it must be whole global batches of %" PRIu64,
                 in->skip, size);
        return -EINVAL;
    }
    int error = echo_batches(&in->echo, &plan->batches, in->skip / size, stop, &plan->echo);
    if (error == -ERANGE)
        str_addf(why, "skip=%" PRIu64 " is past the end, echoes included", in->skip);
    if (error == -E2BIG)
        str_addf(why, "there are more than %u batches with their echoes", ECHO_BATCHES_MOST);
    plan->steps = plan->echo.count;
    return error;
}

static int plan_prepare(struct plan *plan, const struct plan_stop *stop, struct str *why)
{
    int error = check_input(&plan->input, why);

    if (!error)
        error = place_ranks(plan, why);
    if (!error)
        error = echo_order(plan, stop, why);
    if (!error)
        error = order_locally(plan, stop);
    if (!error)
        error = cut_batches(plan, why);
    if (!error)
        error = echo_steps(plan, stop, why);
    if (!error)
        error = deal_create(&plan->placement, &plan->input.owners, batches_length(&plan->batches, 0),
                            plan->echoed ? plan->input.samples : 0, &plan->deal);
    return error == -ENOMEM ? str_no_memory(why) : error;
}

int plan_create(const struct plan_input *input, const struct plan_stop *stop, struct plan **plan, struct str *why)
{
    struct plan *p = calloc(1, sizeof *p);

    if (!p)
        return str_no_memory(why);
    p->input = *input;
    int error = plan_prepare(p, stop, why);
    if (error) {
        plan_destroy(p);
        return error;
    }
    *plan = p;
    return 0;
}

/* All batches but the last, which is used at the end, have the same share for every rank. */
struct plan_shape plan_shape(const struct plan *plan)
{
    const struct batches *b = &plan->batches;
    struct plan_shape shape = {.ranks = b->ranks};

    if (plan->steps > 0) {
        shape.uses = plan->echo.short_uses ? plan->echo.short_uses : 1;
        shape.last = plan->echo.batch && !plan->echo.short_uses ? (uint32_t)b->size : batches_length(b, b->steps - 1);
        shape.full = (plan->steps - shape.uses) * (b->size / b->ranks);
    }
    return shape;
}

uint64_t plan_shape_length(const struct plan_shape *s, uint32_t rank)
{
    return s->full + s->uses * batches_share(s->last, s->ranks, rank);
}

uint64_t plan_shape_place(const struct plan_shape *s, uint32_t rank)
{
    uint64_t last = rank < s->ranks ? batches_place(s->last, s->ranks, rank) : s->last;

    return rank * s->full + s->uses * last;
}

uint64_t plan_length_all(const struct plan *plan)
{
    struct plan_shape shape = plan_shape(plan);

    return plan_shape_place(&shape, shape.ranks);
}

/* One run: the step's batch in the order of ranks, behind room for the digest of those before. */
struct running {
    struct plan *plan;
    uint32_t *lists;
    uint64_t *at;    /* by rank: where its next batch goes */
    uint8_t *hashed; /* the digest, then `out` */
    uint32_t *out;
    uint32_t *filled_up; /* scratch for the last batch */
    struct plan_summary *summary;
    bool adds_fresh; /* sample by sample; else at the end, from the sum of all */
};

static void count_elsewhere(void *user, uint32_t sample, bool owned)
{
    struct running *run = user;
    const struct plan_input *in = &run->plan->input;

    *(owned ? &run->summary->moved_bytes : &run->summary->unowned_bytes) += in->bytes(in->user, sample);
}

static void count_fresh(void *user, uint32_t sample)
{
    struct running *run = user;
    const struct plan_input *in = &run->plan->input;

    run->summary->fresh_bytes += in->bytes(in->user, sample);
}

static void add_tally(struct running *run, uint32_t n, const struct deal_tally *tally)
{
    struct plan_summary *s = run->summary;

    s->samples += n;
    s->fresh += n - tally->repeats;
    s->refetched += tally->refetched;
    s->duplicates += tally->duplicates;
    s->local += tally->local;
    s->moved += tally->moved;
    s->unowned += tally->unowned;
    s->transfers += tally->transfers;
    if ((unsigned __int128)tally->moved * s->worst_of > (unsigned __int128)s->worst_moved * n || s->worst_of == 0) {
        s->worst_moved = tally->moved;
        s->worst_of = n;
    }
}

static void put_step(struct running *run, uint32_t n)
{
    uint32_t ranks = run->plan->batches.ranks;

    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t share = batches_share(n, ranks, r);
        const uint32_t *from = run->out + batches_place(n, ranks, r);
        memcpy(run->lists + run->at[r], from, share * sizeof *from);
        run->at[r] += share;
    }
}

static void add_digest(struct running *run, uint32_t n)
{
    struct digest d = hash128(run->hashed, sizeof d.byte + (size_t)n * sizeof *run->out, 0);

    memcpy(run->hashed, d.byte, sizeof d.byte);
}

static void run_step(struct running *run, uint64_t step)
{
    struct plan *plan = run->plan;
    const struct plan_input *in = &plan->input;
    uint32_t use = plan->echo.batch ? plan->echo.batch[step] : 0;
    bool again = use & ECHO_AGAIN;
    const struct deal_watch bytes = {count_elsewhere, count_fresh, run}, *watch = in->bytes && !again ? &bytes : NULL;
    struct deal_tally tally;

    if (plan->echo.batch)
        step = use & ~ECHO_AGAIN;
    uint32_t n = batches_length(&plan->batches, step);
    const uint32_t *batch = batches_at(&plan->batches, step, run->filled_up);
    if (in->mode == PLAN_REGULAR) {
        deal_regular(plan->deal, batch, n, run->out);
        deal_count(plan->deal, run->out, n, watch, &tally);
    } else {
        deal_locality(plan->deal, batch, n, run->out, watch, &tally);
    }
    if (again) /* dealt as at its first use, so that all of it is where it was */
        tally = (struct deal_tally){.local = n, .repeats = n};
    if (watch && run->adds_fresh && !plan->echoed)
        for (uint32_t i = 0; i < n; i++)
            count_fresh(run, run->out[i]);
    add_tally(run, n, &tally);
    add_digest(run, n);
    put_step(run, n);
}

static int run_steps(struct running *run, const struct plan_stop *stop)
{
    const struct batches *b = &run->plan->batches;
    uint64_t done = PLAN_SLICE;

    for (uint64_t step = 0; step < run->plan->steps; step++) {
        /* A step costs something for each rank, however small it is. */
        done += b->size + run->plan->placement.nodes;
        if (done >= PLAN_SLICE) {
            if (plan_stopped(stop))
                return -EINTR;
            done = 0;
        }
        run_step(run, step);
    }
    return 0;
}

/* Of entries of the order, which begins again at its end. */
static uint64_t sum_bytes(const struct running *run, uint64_t from, uint64_t to)
{
    const struct batches *b = &run->plan->batches;
    const struct plan_input *in = &run->plan->input;
    uint64_t bytes = 0;

    for (uint64_t i = from; i < to; i++)
        bytes += in->bytes(in->user, b->order[i % b->count]);
    return bytes;
}

/* To ask for the size of each sample in the order of an epoch takes longer than to deal it. So only those are asked for
 * that are not read, or read again to fill up the last batch. */
static uint64_t fresh_of_all(const struct running *run)
{
    const struct batches *b = &run->plan->batches;
    uint64_t end = b->skip + (uint64_t)b->total;

    return run->plan->input.bytes_of_all - sum_bytes(run, 0, b->skip) - sum_bytes(run, end, b->count) +
           sum_bytes(run, b->count, end);
}

/* What the lists are of begins the chain of digests. */
static void begin_digest(struct running *run)
{
    const struct batches *b = &run->plan->batches;
    const uint64_t head[] = {1, b->ranks, b->size, b->total, run->plan->steps};
    struct digest d = hash128(head, sizeof head, 0);

    memcpy(run->hashed, d.byte, sizeof d.byte);
}

static bool run_init(struct running *run)
{
    const struct batches *b = &run->plan->batches;
    const struct plan_shape shape = plan_shape(run->plan);
    bool fills_up = b->skip + (uint64_t)b->total > b->count;

    run->hashed = malloc(sizeof run->summary->digest + (size_t)batches_length(b, 0) * sizeof *run->out);
    run->at = malloc(b->ranks * sizeof *run->at);
    run->filled_up = fills_up ? malloc((shape.last + !shape.last) * sizeof *run->filled_up) : NULL;
    if (!run->hashed || !run->at || (fills_up && !run->filled_up))
        return false;
    run->out = (uint32_t *)(void *)(run->hashed + sizeof run->summary->digest);
    for (uint32_t r = 0; r < b->ranks; r++)
        run->at[r] = plan_shape_place(&shape, r);
    return true;
}

int plan_run(struct plan *plan, uint32_t *lists, const struct plan_stop *stop, struct plan_summary *summary)
{
    const struct plan_input *in = &plan->input;
    bool summed = in->bytes && in->bytes_of_all > 0 && in->echo.factor == ECHO_ONE;
    struct running run = {.plan = plan, .lists = lists, .summary = summary, .adds_fresh = !summed};
    const struct batches *b = &plan->batches;
    uint32_t left = b->count - b->skip;
    int error = -ENOMEM;

    *summary = (struct plan_summary){.steps = plan->steps};
    if (run_init(&run)) {
        deal_begin(plan->deal);
        begin_digest(&run);
        error = run_steps(&run, stop);
        if (!error && summed)
            summary->fresh_bytes = fresh_of_all(&run);
        memcpy(summary->digest.byte, run.hashed, sizeof summary->digest.byte);
    }
    summary->unread = left > b->total ? left - b->total : 0;
    free(run.hashed);
    free(run.at);
    free(run.filled_up);
    return error;
}
