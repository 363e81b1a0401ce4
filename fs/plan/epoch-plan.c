/* The pipeline: plan_create prepares what is possible, then the steps are dealt one by one. */
#include "fs/plan/epoch-plan.h"
#include "fs/plan/epoch-plan-inside.h"

#include "fs/base/cleanup.h"
#include "fs/plan/local.h"
#include "fs/plan/order.h"
#include "fs/plan/uses.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

void plan_destroy(struct plan *plan)
{
    if (!plan)
        return;
    swaps_destroy(plan->swaps);
    deal_destroy(plan->deal);
    placement_fini(&plan->placement);
    free(plan->echo.batch);
    free(plan->echoed);
    free(plan->local);
    free(plan);
}

/* Maximum number of uses of anything. */
static uint64_t echoes_most(const struct plan_input *in, enum plan_echo_at at)
{
    return in->echo_at == at ? (in->echo.factor + (uint64_t)ECHO_ONE - 1) / ECHO_ONE : 1;
}

static bool is_echoed(const struct plan_input *in, enum plan_echo_at at)
{
    return in->echo.factor != ECHO_ONE && in->echo_at == at;
}

/* Maximum length of the sequence that is dealt, including padding of the tail. */
static uint64_t dealt_most(const struct plan_input *in)
{
    return in->count * echoes_most(in, ECHO_AT_EXAMPLE) + in->ranks;
}

static uint64_t step_most(const struct plan_input *in)
{
    uint64_t dealt = dealt_most(in), batch = (uint64_t)in->ranks * in->batch;
    return dealt < batch ? dealt : batch;
}

uint64_t plan_entries_most(const struct plan_input *in)
{
    uint64_t all = dealt_most(in) * echoes_most(in, ECHO_AT_BATCH), steps = in->to - in->from + 1;
    return in->chosen && steps <= all && steps * step_most(in) < all ? steps * step_most(in) : all;
}

/* With one rank there is nothing to swap. */
static bool is_swapped(const struct plan_input *in)
{
    return in->cost && in->ranks > 1;
}

/* Maximum number of steps in a window. */
static uint32_t window_most(const struct plan_input *in)
{
    uint64_t steps = dealt_most(in) / ((uint64_t)in->ranks * in->batch) + 1;
    return steps < in->window ? (uint32_t)steps : in->window;
}

uint64_t plan_local_most(const struct plan_input *in)
{
    return in->mode == PLAN_LOCAL ? dealt_most(in) : 0;
}

uint64_t plan_memory_most(const struct plan_input *in)
{
    enum { A_STEP = 10, A_RANK = 48, A_NODE = 192 }; /* bytes per sample of the longest step, per rank, per node */
    uint64_t dealt = dealt_most(in), batch = (uint64_t)in->ranks * in->batch, longest = step_most(in);
    uint64_t bytes = longest * A_STEP + (uint64_t)in->ranks * A_RANK + (uint64_t)in->owners.nodes * A_NODE;
    if (is_echoed(in, ECHO_AT_EXAMPLE))
        bytes += dealt * sizeof(uint32_t) + uses_bytes(in->samples);
    if (is_echoed(in, ECHO_AT_BATCH))
        bytes += (dealt / batch + 1) * (echoes_most(in, ECHO_AT_BATCH) * sizeof(uint32_t) + sizeof(bool));
    if (is_swapped(in)) /* and two ratios per window */
        bytes += swaps_memory(in->ranks, longest, window_most(in)) +
                 (dealt / batch + 2) * echoes_most(in, ECHO_AT_BATCH) / in->window * 2 * sizeof(uint32_t);
    return bytes + plan_local_most(in) * (sizeof(uint16_t) + (in->local ? 0 : sizeof(uint32_t)));
}

static int check_input(const struct plan_input *in, struct str *why)
{
    if (in->ranks == 0 || in->ranks > PLAN_RANKS_MOST)
        return str_fail(why, -ERANGE, "`ranks` must be 1 to %d", PLAN_RANKS_MOST);
    if (in->batch == 0)
        return str_fail(why, -ERANGE, "batch must be 1 at least");
    if (in->owners.nodes == 0 || in->owners.nodes > PLAN_NODES_MOST || in->owners.groups == 0 ||
        in->owners.groups > PLAN_GROUPS_MOST)
        return str_fail(why, -ERANGE, "%" PRIu32 " nodes in %" PRIu32 " groups: the maximum is %d nodes in %d groups",
                        in->owners.nodes, in->owners.groups, PLAN_NODES_MOST, PLAN_GROUPS_MOST);
    if (in->echo.factor < ECHO_ONE || in->echo.factor > ECHO_MOST)
        return str_fail(why, -ERANGE, "echo must be 1 to %d", ECHO_MOST / ECHO_ONE);
    if (in->cost && in->window > 1 && is_echoed(in, ECHO_AT_BATCH))
        return str_fail(
            why, -EINVAL,
            "`window` must be 1 with `echo_at=batch`: a batch is dealt once, and its uses lie in several windows");
    if (in->count > PLAN_ENTRIES_MOST)
        return str_fail(why, -E2BIG, "the order has %" PRIu32 " entries; at most %u can be planned", in->count,
                        PLAN_ENTRIES_MOST);
    return 0;
}

static int place_ranks(struct plan *plan, struct str *why)
{
    const struct plan_input *in = &plan->input;
    int error = placement_init(&plan->placement, in->owners.nodes, in->ranks, in->node_of_rank);
    if (error == -EDOM)
        str_addf(why,
                 "%" PRIu32 " ranks cannot be divided evenly over %" PRIu32
                 " nodes: set `nodes=` to the node of each rank",
                 in->ranks, in->owners.nodes);
    if (error == -ERANGE)
        str_addf(why, "a rank is on a node that is not in the world: its nodes are 0 to %" PRIu32,
                 in->owners.nodes - 1);
    return error;
}

static int echo_order(struct plan *plan, const struct plan_stop *stop, struct str *why)
{
    struct plan_input *in = &plan->input;
    if (!is_echoed(in, ECHO_AT_EXAMPLE))
        return 0;
    int error = echo_examples(&in->echo, in->order, in->count, stop, &plan->echoed, &in->count);
    if (error == -E2BIG)
        str_addf(why, "the order, including echoes, has more than %u entries", PLAN_ENTRIES_MOST);
    if (!error)
        in->order = plan->echoed;
    return error;
}

static int order_locally(struct plan *plan, const struct plan_stop *stop)
{
    struct plan_input *in = &plan->input;
    uint32_t *merged = in->local;
    if (in->mode != PLAN_LOCAL)
        return 0;
    if (!merged)
        merged = plan->local = malloc((in->count + 1ul) * sizeof *merged);
    int error = merged ? local_order(&plan->placement, &in->owners, in->order, in->count, stop, merged) : -ENOMEM;
    if (!error)
        in->order = merged;
    return error;
}

/* Start of the window of a step, as a position in the order before `skip`: windows are counted from the start of the
 * order, so that they do not depend on `skip`. */
static uint64_t window_begin(const struct plan_input *in, uint64_t size, uint64_t step)
{
    uint64_t of = size * (is_swapped(in) ? in->window : 1);
    uint64_t from = (in->skip + step * size) / of * of;
    if (in->skip % size == 0)
        return from; /* may be before `skip`: then only the rest of the window is dealt */
    return from <= in->skip ? in->skip : in->skip + (from - in->skip + size - 1) / size * size;
}

static int refuse_steps(uint64_t to, uint64_t steps, struct str *why)
{
    return str_fail(why, -ERANGE, "there is no step %" PRIu64 ": the plan has %" PRIu64 " steps", to, steps);
}

/* The steps to deal: the wanted ones, and those that they depend on, by a window or by earlier uses. */
static int choose_steps(struct plan *plan, struct str *why)
{
    const struct plan_input *in = &plan->input;
    struct batches *b = &plan->batches;
    uint64_t from = in->chosen ? in->from : 0, to = in->chosen ? in->to : b->steps - 1, begin = in->skip, of = 1;
    if (in->chosen && (to >= b->steps || from > to))
        return refuse_steps(to, b->steps, why);
    plan->steps = b->steps ? to - from + 1 : 0;
    if (!plan->echoed)
        begin = window_begin(in, b->size, from);
    plan->lead = (in->skip + from * b->size - begin) / b->size;
    if (is_swapped(in))
        of = in->window;
    b->skip = (uint32_t)begin;
    int error = batches_cut(b, in->batch, in->tail);
    plan->until = plan->lead + plan->steps;
    while (plan->until < b->steps && (begin / b->size + plan->until) % of)
        plan->until++;
    return error;
}

static int cut_batches(struct plan *plan, struct str *why)
{
    struct plan_input *in = &plan->input;
    bool echoed = is_echoed(in, ECHO_AT_BATCH);
    uint32_t odd = in->count % in->ranks;
    if (!echoed && in->tail == TAIL_PAD && odd && in->skip > in->count && in->skip <= in->count + in->ranks - odd)
        in->skip = in->count; /* the padding was read as well */
    uint64_t skip = echoed ? 0 : in->skip;
    plan->batches =
        (struct batches){.order = in->order, .count = in->count, .skip = (uint32_t)skip, .ranks = in->ranks};
    int error = skip > in->count ? -ERANGE : batches_cut(&plan->batches, in->batch, in->tail);
    if (error == -ERANGE)
        str_addf(why, "skip=%" PRIu64 " is past the end: there are %" PRIu32 " samples in the order", in->skip,
                 in->count);
    return error || echoed ? error : choose_steps(plan, why);
}

/* Keep only the wanted steps. */
static int crop_echo(struct plan *plan, struct str *why)
{
    const struct plan_input *in = &plan->input;
    struct echo_steps *e = &plan->echo;
    uint64_t whole = e->count - e->short_uses;
    if (in->chosen) {
        if (in->to >= e->count || in->from > in->to)
            return refuse_steps(in->to, e->count, why);
        e->count = in->to - in->from + 1;
        e->begun = in->from ? 0 : e->begun;
        memmove(e->batch, e->batch + in->from, e->count * sizeof *e->batch);
        e->short_uses = in->to < whole ? 0 : in->from > whole ? e->count : in->to + 1 - whole;
    }
    plan->steps = plan->until = e->count;
    return 0;
}

static int refuse_position(const struct plan_input *in, struct str *why)
{
    return str_fail(why, -EINVAL,
                    "skip=%" PRIu64 ": with `echo_at=batch` it must be a multiple of the global batch, %" PRIu64
                    ", or within the uses of the last batch, where all ranks have read the same number of samples",
                    in->skip, (uint64_t)in->ranks * in->batch);
}

/* A loader cuts its list without regard to steps. So a checkpoint can be in the middle of a use of the last batch, if
 * that is shorter than others and is used several times. */
static int echo_steps(struct plan *plan, const struct plan_stop *stop, struct str *why)
{
    const struct plan_input *in = &plan->input;
    const struct batches *b = &plan->batches;
    if (!is_echoed(in, ECHO_AT_BATCH))
        return 0;
    int error = echo_batches(&in->echo, b, in->skip, stop, &plan->echo);
    if (error == -EDOM || (!error && (plan->echo.begun % in->ranks || (plan->echo.begun && b->total % in->ranks))))
        return refuse_position(in, why);
    if (error == -ERANGE)
        str_addf(why, "skip=%" PRIu64 " is past the end, echoes included", in->skip);
    if (error == -E2BIG)
        str_addf(why, "there are more than %u batches, including echoes", ECHO_BATCHES_MOST);
    if (!error)
        error = crop_echo(plan, why);
    plan->crop = error ? 0 : (uint32_t)(plan->echo.begun / in->ranks);
    return error;
}

static int prepare_swaps(struct plan *plan)
{
    const struct plan_input *in = &plan->input;
    const struct swap_terms terms = {
        .placement = &plan->placement,
        .owners = &in->owners,
        .first = deal_first(plan->deal),
        .balance = in->balance,
        .window = window_most(in),
        .longest = batches_length(&plan->batches, 0),
        .within_nodes = in->mode == PLAN_LOCAL,
        .cost = in->cost,
        .bytes = in->bytes,
        .user = in->user,
    };
    return is_swapped(in) ? swaps_create(&terms, &plan->swaps) : 0;
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
                            plan->echoed ? plan->input.samples : 0, is_swapped(&plan->input), &plan->deal);
    if (!error)
        error = prepare_swaps(plan);
    return error == -ENOMEM ? str_no_memory(why) : error;
}

int plan_create(const struct plan_input *input, const struct plan_stop *stop, struct plan **plan, struct str *why)
{
    struct plan *p = calloc(1, sizeof *p);
    if (!p)
        return str_no_memory(why);
    p->input = *input;
    int error = plan_prepare(p, stop, why);
    if (error)
        plan_destroy(p);
    else
        *plan = p;
    return error;
}

/* All batches except the last one, which is used at the end, have equal shares for all ranks. */
struct plan_shape plan_shape(const struct plan *plan)
{
    const struct batches *b = &plan->batches;
    struct plan_shape shape = {.ranks = b->ranks};
    if (plan->steps > 0) {
        shape.uses = plan->echo.short_uses ? plan->echo.short_uses : 1;
        shape.last = !plan->echo.batch       ? batches_length(b, plan->lead + plan->steps - 1)
                     : plan->echo.short_uses ? batches_length(b, b->steps - 1)
                                             : (uint32_t)b->size;
        shape.full = (plan->steps - shape.uses) * (b->size / b->ranks);
        shape.crop = plan->crop;
    }
    return shape;
}

uint64_t plan_shape_length(const struct plan_shape *s, uint32_t rank)
{
    return s->full + s->uses * batches_share(s->last, s->ranks, rank) - s->crop;
}

uint64_t plan_shape_place(const struct plan_shape *s, uint32_t rank)
{
    uint64_t last = rank < s->ranks ? batches_place(s->last, s->ranks, rank) : s->last;
    return rank * s->full + s->uses * last - (uint64_t)rank * s->crop;
}

uint64_t plan_length_all(const struct plan *plan)
{
    struct plan_shape shape = plan_shape(plan);
    return plan_shape_place(&shape, shape.ranks);
}
