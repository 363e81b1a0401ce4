/* Deals a prepared plan, step by step, into lists, a digest and a summary. */
#include "fs/plan/epoch-plan-inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "lists and digests are little-endian");

/* The state of a run. */
struct running {
    struct plan *plan;
    uint32_t *lists;
    uint64_t *at;    /* per rank: where its next batch goes */
    uint8_t *hashed; /* the previous digest, then `out`: the step's batch, rank after rank */
    uint32_t *out;
    uint32_t *filled_up; /* scratch for a padded last batch */
    struct plan_summary *summary;
    bool adds_fresh;          /* bytes are added per sample; else at the end, from the sum of all */
    uint32_t *before, *after; /* per window: the slowest rank by the mean; NULL: no swaps */
    uint64_t windows;
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

static void put_step(struct running *run, uint32_t n, uint32_t crop)
{
    uint32_t ranks = run->plan->batches.ranks;
    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t share = batches_share(n, ranks, r);
        const uint32_t *from = run->out + batches_place(n, ranks, r);
        memcpy(run->lists + run->at[r], from + crop, (share - crop) * sizeof *from);
        run->at[r] += share - crop;
    }
}

static void add_digest(struct running *run, uint32_t n)
{
    struct digest d = hash128(run->hashed, sizeof d.byte + (size_t)n * sizeof *run->out, 0);
    memcpy(run->hashed, d.byte, sizeof d.byte);
}

/* The batch of a step, and whether it was used before. */
static const uint32_t *batch_of(struct running *run, uint64_t step, uint32_t *n, bool *again)
{
    struct plan *plan = run->plan;
    uint32_t use = plan->echo.batch ? plan->echo.batch[step] : 0;
    *again = use & ECHO_AGAIN;
    if (plan->echo.batch)
        step = use & ~ECHO_AGAIN;
    *n = batches_length(&plan->batches, step);
    return batches_at(&plan->batches, step, run->filled_up);
}

static bool is_wanted(const struct plan *plan, uint64_t step)
{
    return step >= plan->lead && step - plan->lead < plan->steps;
}

/* Callbacks for a step: none if its batch was used before, or the step is not wanted. */
static const struct deal_watch *watch_of(const struct running *run, const struct deal_watch *bytes, uint64_t step,
                                         bool again)
{
    return run->plan->input.bytes && !again && is_wanted(run->plan, step) ? bytes : NULL;
}

/* Add the step in `out` to lists, digest and summary. */
static void end_step(struct running *run, uint64_t step, uint32_t n, bool again, struct deal_tally *tally)
{
    if (!is_wanted(run->plan, step))
        return;
    uint32_t crop = step == run->plan->lead ? run->plan->crop : 0, left = n - crop * run->plan->batches.ranks;
    if (again || crop) /* dealt as at its first use, so no sample moves */
        *tally = (struct deal_tally){.local = left, .repeats = left};
    if (run->plan->input.bytes && !again && !crop && run->adds_fresh && !run->plan->echoed)
        for (uint32_t i = 0; i < n; i++)
            count_fresh(run, run->out[i]);
    add_tally(run, left, tally);
    add_digest(run, n);
    put_step(run, n, crop);
}

static void run_step(struct running *run, uint64_t step)
{
    struct plan *plan = run->plan;
    const struct deal_watch bytes = {count_elsewhere, count_fresh, run}, *watch;
    struct deal_tally tally;
    bool again;
    uint32_t n;
    const uint32_t *batch = batch_of(run, step, &n, &again);
    watch = watch_of(run, &bytes, step, again);
    if (plan->input.mode == PLAN_REGULAR) {
        deal_regular(plan->deal, batch, n, run->out);
        deal_count(plan->deal, run->out, NULL, n, watch, &tally);
    } else {
        deal_locality(plan->deal, batch, n, run->out, watch, &tally);
    }
    end_step(run, step, n, again, &tally);
}

/* --- windows with swaps --- */

static void add_swaps(struct running *run, const struct swap_tally *tally, bool again)
{
    struct plan_costs *c = &run->summary->costs;
    run->before[run->windows] = tally->before;
    run->after[run->windows++] = tally->after;
    if (again)
        return;
    c->swaps += tally->swaps;
    c->moved += tally->moved;
    c->moved_bytes += tally->moved_bytes;
}

static int run_window(struct running *run, uint64_t from, uint64_t to, const struct plan_stop *stop)
{
    struct plan *plan = run->plan;
    const struct deal_watch bytes = {count_elsewhere, count_fresh, run};
    struct deal_tally tally;
    struct swap_tally swapped;
    const uint16_t *owner;
    bool again = false, wanted = false;
    uint32_t n;
    swaps_begin(plan->swaps);
    for (uint64_t step = from; step < to; step++) {
        const uint32_t *batch = batch_of(run, step, &n, &again);
        if (plan->input.mode == PLAN_REGULAR)
            deal_regular(plan->deal, batch, n, run->out);
        else
            deal_locality(plan->deal, batch, n, run->out, NULL, &tally);
        swaps_add(plan->swaps, batch, run->out, n);
        wanted |= is_wanted(plan, step);
        if (is_wanted(plan, step) && !again && plan->input.mode != PLAN_REGULAR)
            run->summary->transfers += tally.transfers;
    }
    int error = swaps_run(plan->swaps, stop, &swapped);
    if (error)
        return error;
    if (wanted)
        add_swaps(run, &swapped, again);
    for (uint64_t step = from; step < to; step++) {
        const uint32_t *list = swaps_step(plan->swaps, (uint32_t)(step - from), &n, &owner);
        memcpy(run->out, list, n * sizeof *list);
        deal_count(plan->deal, run->out, owner, n, watch_of(run, &bytes, step, again), &tally);
        end_step(run, step, n, again, &tally);
    }
    return 0;
}

/* The end of the steps that are dealt together with this one. */
static uint64_t window_end(const struct plan *plan, uint64_t step)
{
    const struct batches *b = &plan->batches;
    if (!plan->swaps || plan->echo.batch)
        return step + 1;
    uint64_t window = plan->input.window, end = step + window - (b->skip / b->size + step) % window;
    return end < plan->until ? end : plan->until;
}

static int run_steps(struct running *run, const struct plan_stop *stop)
{
    const struct plan *plan = run->plan;
    uint64_t done = PLAN_SLICE, end;
    int error = 0;
    for (uint64_t step = 0; step < plan->until && !error; step = end) {
        end = window_end(plan, step);
        /* even a small step costs something per rank */
        done += (end - step) * (plan->batches.size + plan->placement.nodes);
        if (done >= PLAN_SLICE) {
            if (plan_stopped(stop))
                return -EINTR;
            done = 0;
        }
        if (plan->swaps)
            error = run_window(run, step, end, stop);
        else
            run_step(run, step);
    }
    return error;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void add_quantiles(uint32_t *ratio, uint64_t n, uint32_t *median, uint32_t *worst)
{
    if (n == 0)
        return;
    qsort(ratio, n, sizeof *ratio, by_size);
    *median = ratio[(n - 1) / 2];
    *worst = ratio[n - 1];
}

/* Sum of bytes of entries of the order, which is cyclic. */
static uint64_t sum_bytes(const struct running *run, uint64_t from, uint64_t to)
{
    const struct batches *b = &run->plan->batches;
    const struct plan_input *in = &run->plan->input;
    uint64_t bytes = 0;
    for (uint64_t i = from; i < to; i++)
        bytes += in->bytes(in->user, b->order[i % b->count]);
    return bytes;
}

/* Looking up the size of each sample in the epoch's order takes longer than dealing. So only samples that are not read,
 * or are read again as padding, are looked up. */
static uint64_t fresh_of_all(const struct running *run)
{
    const struct batches *b = &run->plan->batches;
    uint64_t end = b->skip + (uint64_t)b->total;
    return run->plan->input.bytes_of_all - sum_bytes(run, 0, b->skip) - sum_bytes(run, end, b->count) +
           sum_bytes(run, b->count, end);
}

/* The chain of digests begins with the inputs of the lists. */
static void begin_digest(struct running *run)
{
    const struct batches *b = &run->plan->batches;
    const struct plan_input *in = &run->plan->input;
    uint64_t total = b->total - (in->chosen ? 0 : run->plan->lead * b->size);
    const uint64_t head[] = {1, b->ranks, b->size, total, run->plan->steps, in->from};
    struct digest d = hash128(head, sizeof head - (in->chosen ? 0 : sizeof *head), 0);
    memcpy(run->hashed, d.byte, sizeof d.byte);
}

static bool run_init(struct running *run)
{
    const struct batches *b = &run->plan->batches;
    const struct plan_shape shape = plan_shape(run->plan);
    bool fills_up = b->skip + (uint64_t)b->total > b->count;
    run->hashed = malloc(sizeof run->summary->digest + (size_t)batches_length(b, 0) * sizeof *run->out);
    run->at = malloc(b->ranks * sizeof *run->at);
    run->filled_up = fills_up ? malloc((batches_length(b, 0) + 1ul) * sizeof *run->filled_up) : NULL;
    if (!run->hashed || !run->at || (fills_up && !run->filled_up))
        return false;
    if (run->plan->swaps) {
        uint64_t windows = run->plan->until / (run->plan->echo.batch ? 1 : run->plan->input.window) + 2;
        run->before = malloc(windows * sizeof *run->before);
        run->after = malloc(windows * sizeof *run->after);
        if (!run->before || !run->after)
            return false;
    }
    run->out = (uint32_t *)(void *)(run->hashed + sizeof run->summary->digest);
    for (uint32_t r = 0; r < b->ranks; r++)
        run->at[r] = plan_shape_place(&shape, r);
    return true;
}

int plan_run(struct plan *plan, uint32_t *lists, const struct plan_stop *stop, struct plan_summary *summary)
{
    const struct plan_input *in = &plan->input;
    bool summed = in->bytes && in->bytes_of_all > 0 && in->echo.factor == ECHO_ONE && !in->chosen && !plan->lead;
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
        add_quantiles(run.before, run.windows, &summary->costs.median_before, &summary->costs.worst_before);
        add_quantiles(run.after, run.windows, &summary->costs.median_after, &summary->costs.worst_after);
    }
    summary->unread = left > b->total ? left - b->total : 0;
    free(run.hashed);
    free(run.at);
    free(run.filled_up);
    free(run.before);
    free(run.after);
    return error;
}
