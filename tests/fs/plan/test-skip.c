/* An epoch read in three parts, each with other ranks: every combination of mode, tail and ranks. Each sample is read
 * exactly as often as promised: once, or as often as it is echoed; `pad` repeats some, and `drop` leaves some out. */
#include "fs/base/cleanup.h"
#include "fs/plan/epoch-plan.h"
#include "fs/plan/order.h"
#include "tests/lib/tap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 23, RANKS = 9, NODES = 4, PARTS = 3 };

static const char *const modes[] = {"locality", "regular", "local"}, *const tails[] = {"pad", "drop", "short"};
static uint32_t order[SAMPLES], uses[SAMPLES];
static uint16_t owner[2][SAMPLES]; /* of one group; and where two groups own each sample, the other's */
static uint32_t uneven[RANKS];

struct part {
    uint32_t ranks, batch;
    const uint32_t *node_of_rank;
};

static struct plan_input input_of(const struct part *part, enum plan_mode mode, uint32_t nodes, uint32_t groups)
{
    return (struct plan_input){.order = order,
                               .count = SAMPLES,
                               .ranks = part->ranks,
                               .batch = part->batch,
                               .mode = mode,
                               .echo = {ECHO_ONE},
                               .samples = SAMPLES,
                               .owners = {.nodes = nodes, .groups = groups, .of = {owner[0], owner[1]}},
                               .node_of_rank = part->node_of_rank};
}

/* Reads `steps` of the plan, or all; returns the samples read, or UINT64_MAX where there is no such plan. */
static uint64_t read_part(const struct plan_input *in, uint64_t steps, struct plan_summary *summary)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct plan *plan;
    uint64_t done = 0;
    if (plan_create(in, NULL, &plan, &why))
        return UINT64_MAX;
    CLEANUP_FREE uint32_t *list = malloc((plan_length_all(plan) + 1) * sizeof *list);
    const struct plan_shape shape = plan_shape(plan);
    if (!list || plan_run(plan, list, NULL, summary))
        bail_out("plan_run");
    for (uint32_t r = 0; r < in->ranks; r++) {
        uint64_t length = plan_shape_length(&shape, r), most = steps * in->batch < length ? steps * in->batch : length;
        for (uint64_t i = 0; i < most; i++, done++)
            uses[list[plan_shape_place(&shape, r) + i]]++;
    }
    plan_destroy(plan);
    return done;
}

/* The parts before the last one are read for two steps each. */
static bool read_parts(const struct plan_input in[PARTS], uint64_t entries, struct plan_summary *last)
{
    memset(uses, 0, sizeof uses);
    uint64_t skip = 0;
    for (int i = 0; i < PARTS; i++) {
        struct plan_input part = in[i];
        part.skip = skip;
        uint64_t done = read_part(&part, i + 1 < PARTS ? 2 : UINT64_MAX, last);
        if (done == UINT64_MAX)
            return false;
        skip += done;
        if (i + 1 < PARTS && skip > entries)
            return true; /* all of it, and the tail */
    }
    return true;
}

static uint64_t left_out(uint64_t promised)
{
    uint64_t missing = 0;
    for (uint32_t i = 0; i < SAMPLES; i++)
        missing += uses[i] < promised ? promised - uses[i] : 0;
    return missing;
}

static uint64_t repeated(uint64_t promised)
{
    uint64_t more = 0;
    for (uint32_t i = 0; i < SAMPLES; i++)
        more += uses[i] > promised ? uses[i] - promised : 0;
    return more;
}

static bool is_as_promised(const struct plan_input in[PARTS], uint64_t times)
{
    struct plan_summary last = {0};
    if (!read_parts(in, SAMPLES * times, &last)) {
        diag("there is no such plan");
        return false;
    }
    uint64_t missing = left_out(times), more = repeated(times), most = 0;
    for (int i = 0; i < PARTS; i++)
        most = in[i].ranks > most ? in[i].ranks : most;
    bool dropped = in[PARTS - 1].tail == TAIL_DROP, padded = in[PARTS - 1].tail == TAIL_PAD;
    bool right = (dropped ? missing < most : missing == 0) && (padded ? more < most : more == 0);
    if (!right)
        diag("ranks %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", batch %" PRIu32 ", %" PRIu32 ", %" PRIu32 ", %" PRIu32
             " nodes, tail %s: %" PRIu64 " left out, %" PRIu64 " repeated",
             in[0].ranks, in[1].ranks, in[2].ranks, in[0].batch, in[1].batch, in[2].batch, in[2].owners.nodes,
             tails[in[2].tail], missing, more);
    return right;
}

/* Local reading goes by the layout, whose nodes stay; the other modes do not look at it. */
static void set_nodes(struct plan_input in[PARTS], uint32_t nodes)
{
    for (int i = 0; i < PARTS; i++)
        if (in[i].mode == PLAN_LOCAL || (!in[i].node_of_rank && in[i].ranks % nodes == 0))
            in[i].owners.nodes = nodes;
        else
            in[i].owners.nodes = 1;
}

static int count_wrong(enum plan_mode mode, enum plan_tail tail, uint32_t nodes, uint32_t groups)
{
    int wrong = 0;
    for (uint32_t r = 0; r < RANKS; r++)
        uneven[r] = (r * r + 1) % nodes;
    for (uint32_t n = 0; n < RANKS * RANKS * RANKS; n++) {
        const struct part part[PARTS] = {
            {n % RANKS + 1, 1 + n % 2, NULL}, {n / RANKS % RANKS + 1, 1, uneven}, {n / RANKS / RANKS + 1, 2, NULL}};
        struct plan_input in[PARTS];
        bool possible = true;
        for (int i = 0; i < PARTS; i++) {
            in[i] = input_of(&part[i], mode, nodes, groups);
            in[i].tail = tail;
            possible &= part[i].node_of_rank || part[i].ranks % nodes == 0 || mode != PLAN_LOCAL;
        }
        if (mode != PLAN_LOCAL)
            in[1].node_of_rank = NULL;
        set_nodes(in, nodes);
        wrong += possible && !is_as_promised(in, 1);
    }
    return wrong;
}

static void test_combinations(void)
{
    for (enum plan_mode mode = PLAN_LOCALITY; mode <= PLAN_LOCAL; mode++)
        for (enum plan_tail tail = TAIL_PAD; tail <= TAIL_SHORT; tail++)
            for (uint32_t nodes = 1; nodes <= NODES; nodes++)
                is_int(count_wrong(mode, tail, nodes, 1), 0, "%s, tail %s, %" PRIu32 " nodes", modes[mode], tails[tail],
                       nodes);
    is_int(count_wrong(PLAN_LOCAL, TAIL_SHORT, 4, 2), 0, "local, two groups");
}

/* Echoed examples are samples like others; echoed batches are the same where they have the same size. */
static void test_echo(void)
{
    for (enum plan_mode mode = PLAN_LOCALITY; mode <= PLAN_LOCAL; mode++) {
        int examples = 0, batches = 0;
        for (uint32_t ranks = 2; ranks <= 8; ranks += 2) {
            const struct part part[PARTS] = {{ranks, 1, NULL}, {2, 2, NULL}, {10 - ranks, 1, NULL}},
                              same[PARTS] = {{2, 2, NULL}, {4, 1, NULL}, {2, 2, NULL}};
            struct plan_input in[PARTS], as[PARTS];
            for (int i = 0; i < PARTS; i++) {
                in[i] = input_of(&part[i], mode, 2, 1);
                as[i] = input_of(&same[i], mode, 2, 1);
                in[i].tail = as[i].tail = TAIL_SHORT;
                in[i].echo = as[i].echo = (struct echo){2 * ECHO_ONE, ranks * 5, 42};
                as[i].echo_at = ECHO_AT_BATCH;
            }
            examples += !is_as_promised(in, 2);
            batches += !is_as_promised(as, 2);
        }
        is_int(examples, 0, "%s: echoed examples", modes[mode]);
        is_int(batches, 0, "%s: echoed batches", modes[mode]);
    }
}

/* --- any plan, interrupted after any batch of a loader --- */

struct dealt {
    uint32_t *list;
    struct plan_shape shape;
};

static bool deal_all(const struct plan_input *in, struct dealt *d)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct plan_summary summary;
    struct plan *plan;
    if (plan_create(in, NULL, &plan, &why))
        return false;
    d->list = malloc((plan_length_all(plan) + 1) * sizeof *d->list);
    d->shape = plan_shape(plan);
    if (!d->list || plan_run(plan, d->list, NULL, &summary))
        bail_out("plan_run");
    plan_destroy(plan);
    return true;
}

/* Adds `by` for each use from entry `from` of each rank's list on. */
static void count_uses(const struct dealt *d, uint64_t from, int by, int *count)
{
    for (uint32_t r = 0; r < d->shape.ranks; r++)
        for (uint64_t i = from; i < plan_shape_length(&d->shape, r); i++)
            count[d->list[plan_shape_place(&d->shape, r) + i]] += by;
}

/* A loader has taken `at` entries of each list: is the rest what the plan that begins there has? */
static bool goes_on(const struct plan_input *in, const struct dealt *whole, uint64_t at)
{
    struct plan_input rest = *in;
    struct dealt d;
    int count[SAMPLES] = {0}, wrong = 0;
    rest.skip = at * in->ranks;
    if (!deal_all(&rest, &d))
        return false;
    count_uses(whole, at, 1, count);
    count_uses(&d, 0, -1, count);
    for (int i = 0; i < SAMPLES; i++)
        wrong += count[i] != 0;
    free(d.list);
    return wrong == 0;
}

static int count_lost(const struct plan_input *in)
{
    struct dealt whole;
    int lost = 0;
    if (!deal_all(in, &whole))
        return 1;
    uint64_t length = plan_shape_length(&whole.shape, 0);
    for (uint64_t at = 0; at < length; at += in->batch)
        lost += !goes_on(in, &whole, at);
    lost += !goes_on(in, &whole, length);
    free(whole.list);
    return lost;
}

static void test_rest(void)
{
    static const struct {
        const char *what;
        uint32_t factor;
        enum plan_echo_at at;
    } echoes[] = {{"no echo", ECHO_ONE, ECHO_AT_EXAMPLE},
                  {"examples twice", 2 * ECHO_ONE, ECHO_AT_EXAMPLE},
                  {"some twice", ECHO_ONE * 3 / 2, ECHO_AT_EXAMPLE},
                  {"batches twice", 2 * ECHO_ONE, ECHO_AT_BATCH},
                  {"some batches twice", ECHO_ONE * 3 / 2, ECHO_AT_BATCH},
                  {"batches 5 times", 5 * ECHO_ONE, ECHO_AT_BATCH}};
    for (size_t e = 0; e < sizeof echoes / sizeof *echoes; e++)
        for (enum plan_mode mode = PLAN_LOCALITY; mode <= PLAN_LOCAL; mode++) {
            int lost = 0, plans = 0;
            for (uint32_t ranks = 1; ranks <= 8; ranks++)
                for (uint32_t batch = 1; batch <= 5; batch++)
                    for (uint32_t nodes = 1; nodes <= 2; nodes++) {
                        struct plan_input in = input_of(&(struct part){ranks, batch, NULL}, mode, nodes, 1);
                        in.echo = (struct echo){echoes[e].factor, 3 * ranks, 42};
                        in.echo_at = echoes[e].at;
                        if (ranks % nodes)
                            continue;
                        for (in.tail = TAIL_PAD; in.tail <= TAIL_DROP; in.tail++, plans++)
                            lost += count_lost(&in);
                    }
            is_int(lost, 0, "%s, %s: the head and the rest of %d plans, after any batch", modes[mode], echoes[e].what,
                   plans);
        }
}

static uint64_t cost_of(void *user, uint32_t sample)
{
    (void)user;
    return 1 + sample * sample % 17;
}

/* Swaps move samples between ranks, and not between steps. */
static void test_windows(void)
{
    for (enum plan_mode mode = PLAN_LOCALITY; mode <= PLAN_LOCAL; mode++)
        for (uint32_t window = 1; window <= 3; window++) {
            int lost = 0;
            for (uint32_t ranks = 2; ranks <= 6; ranks += 2)
                for (uint32_t batch = 1; batch <= 3; batch++) {
                    struct plan_input in = input_of(&(struct part){ranks, batch, NULL}, mode, 2, 1);
                    in.cost = cost_of;
                    in.balance = ECHO_ONE;
                    in.window = window;
                    lost += count_lost(&in);
                }
            is_int(lost, 0, "%s, windows of %" PRIu32 ": the head and the rest", modes[mode], window);
        }
}

int main(void)
{
    if (order_seeded(order, SAMPLES, 1, NULL))
        bail_out("order_seeded");
    for (uint32_t i = 0; i < SAMPLES; i++) { /* some are nobody's, and node 0 owns too many */
        owner[0][i] = i % 7 == 6 ? UINT16_MAX : i % 3 == 0 ? 0 : (uint16_t)(i % NODES);
        owner[1][i] = (uint16_t)(2 + i % 2);
    }
    test_combinations();
    test_echo();
    test_rest();
    test_windows();
    return done_testing();
}
