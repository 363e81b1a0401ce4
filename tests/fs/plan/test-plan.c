/* Plans by heart: small ones that can be followed with a pencil, digests that must never change, interruption, and the
 * balance that the paper found. What is right in general tests/fs/plan/model.py knows. */
#include "fs/plan/order.h"
#include "fs/plan/epoch-plan.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint32_t *list_of(const struct plan_input *in, struct plan_summary *summary)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct plan *plan;
    if (plan_create(in, NULL, &plan, &why))
        bail_out("plan: %s", why.data ? why.data : "");
    uint32_t *list = malloc((plan_length_all(plan) + 1) * sizeof *list);
    if (!list || plan_run(plan, list, NULL, summary))
        bail_out("plan_run");
    plan_destroy(plan);
    return list;
}

/* Figure 5 of the paper: of twelve samples Red holds 2, Green 6 and Blue 4; Green gives 2 to Red. */
static void test_paper(void)
{
    static const uint32_t order[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    static const uint16_t owner[] = {1, 1, 2, 0, 1, 1, 2, 2, 1, 0, 1, 2};
    static const uint32_t expected[] = {3, 8, 9, 10, 0, 1, 4, 5, 2, 6, 7, 11};
    struct plan_input in = {.order = order,
                            .count = 12,
                            .ranks = 3,
                            .batch = 4,
                            .echo = {ECHO_ONE},
                            .owners = {.nodes = 3, .groups = 1, .of = {owner}}};
    struct plan_summary s;
    uint32_t *list = list_of(&in, &s);
    is_mem(list, expected, sizeof expected, "Red gets two of Green's");
    is_uint(s.moved, 2, "two are moved");
    is_uint(s.transfers, 1, "in one transfer");
    is_uint(s.local, 10, "the others stay");
    is_uint(s.worst_moved * 100 / s.worst_of, 16, "a sixth of the batch");
    free(list);
}

/* What nobody owns goes first to who lacks most; then the most to the least, the lower number where they are equal. */
static void test_balance(void)
{
    const uint32_t count[] = {9, 0, 1, 8, 2, 4}, target[] = {4, 4, 4, 4, 8}; /* count[5]: nobody's */
    static const struct transfer expected[] = {{5, 4, 4}, {0, 1, 4}, {3, 2, 3}, {0, 4, 1}, {3, 4, 1}};
    struct balance b;
    is_int(balance_init(&b, 5), 0, "a balance");
    balance_run(&b, count, target);
    is_uint(b.transfers, 5, "five transfers");
    is_mem(b.transfer, expected, sizeof expected, "in this order");
    is_uint(b.moved, 9, "nine move");
    is_uint(b.first, 1, "one is nobody's");
    balance_fini(&b);
    balance_fini(&b);
}

static void fill(uint32_t *order, uint16_t *owner, uint32_t n, uint32_t nodes, uint64_t seed)
{
    order_seeded(order, n, seed, NULL);
    for (uint32_t i = 0; i < n; i++)
        owner[i] = (uint16_t)((uint64_t)i * nodes / n);
}

struct golden {
    const char *what, *digest;
    enum plan_mode mode;
    enum plan_tail tail;
    uint32_t echo;
    enum plan_echo_at at;
    uint32_t buffer;
    uint32_t window; /* 0: samples have no cost */
};

/* Every node, build and machine must come to these. */
static const struct golden golden[] = {
    {"locality", "5dcdd69c8bb96cfeba8e9a85dd304466", PLAN_LOCALITY, TAIL_PAD, ECHO_ONE, 0, 0, 0},
    {"locality, short", "c5a0ccf96cfcc1fa6c856436e4ea946e", PLAN_LOCALITY, TAIL_SHORT, ECHO_ONE, 0, 0, 0},
    {"regular", "b375ca974ba92e6568629a3085b93d5e", PLAN_REGULAR, TAIL_PAD, ECHO_ONE, 0, 0, 0},
    {"regular, drop", "f45bffca5ce65ac456b4fa9c16442812", PLAN_REGULAR, TAIL_DROP, ECHO_ONE, 0, 0, 0},
    {"local", "8f8f3d817da27a5d4b40b4729e356208", PLAN_LOCAL, TAIL_PAD, ECHO_ONE, 0, 0, 0},
    {"echoed examples", "4d0dab3dc2a3e52987d0765ff1cee386", PLAN_LOCALITY, TAIL_PAD, 2500000, ECHO_AT_EXAMPLE, 100, 0},
    {"echoed batches", "b1d4ea2540c7e9b6421bdabfedc8049d", PLAN_LOCALITY, TAIL_PAD, 2500000, ECHO_AT_BATCH, 100, 0},
    {"echoed batches, shuffled", "3df918eb8727f45268c60c82341de81a", PLAN_LOCALITY, TAIL_PAD, 2500000, ECHO_AT_BATCH,
     500, 0},
    {"costs", "564b67a0eae8f159ff001827e6ca53c5", PLAN_LOCALITY, TAIL_PAD, ECHO_ONE, 0, 0, 1},
    {"costs, short, windows", "24cf46983a8aab89a24a912595632c33", PLAN_LOCALITY, TAIL_SHORT, ECHO_ONE, 0, 0, 3},
    {"costs, regular", "c85d182a2a1d299ebc64b89116e39eb2", PLAN_REGULAR, TAIL_PAD, ECHO_ONE, 0, 0, 1},
    {"costs, local", "b6aaaab95076b280334e0797c3677e45", PLAN_LOCAL, TAIL_PAD, ECHO_ONE, 0, 0, 2},
    {"costs, echoed examples", "d8169c9fbb8bd2a92cae79d81843250d", PLAN_LOCALITY, TAIL_PAD, 2500000, ECHO_AT_EXAMPLE,
     100, 1},
    {"costs, echoed batches", "daa3d2595d3a0a8aebf9a51fe51aecde", PLAN_LOCALITY, TAIL_PAD, 2500000, ECHO_AT_BATCH, 100,
     1},
};

static uint64_t cost_of(void *user, uint32_t sample)
{
    (void)user;
    return sample * 7919 % 1000 * (sample % 3 + 1);
}

/* The digest as plan.h says, from the lists alone. */
static struct digest digest_lists(const struct plan_input *in, const uint32_t *list, uint64_t length, uint64_t steps)
{
    const uint64_t head[] = {1, in->ranks, (uint64_t)in->ranks * in->batch, in->count, steps};
    struct digest d = hash128(head, sizeof head, 0);
    uint8_t *step = malloc(sizeof d + sizeof *list * in->ranks * in->batch);
    for (uint64_t at = 0; at < length; at += in->batch) {
        size_t share = length - at < in->batch ? length - at : in->batch, n = 0;
        memcpy(step, &d, sizeof d);
        for (uint32_t r = 0; r < in->ranks; r++, n += share)
            memcpy(step + sizeof d + n * sizeof *list, list + r * length + at, share * sizeof *list);
        d = hash128(step, sizeof d + n * sizeof *list, 0);
    }
    free(step);
    return d;
}

static void test_golden(void)
{
    enum { N = 1000 };
    uint32_t order[N];
    uint16_t owner[N];
    char text[DIGEST_TEXT];
    fill(order, owner, N, 5, 42);
    for (int i = 0; i < N; i += 7)
        owner[i] = 0xffff;
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++) {
        const struct golden *g = &golden[i];
        struct plan_input in = {.order = order,
                                .count = N,
                                .ranks = 15,
                                .batch = 8,
                                .mode = g->mode,
                                .tail = g->tail,
                                .echo = {g->echo, g->buffer, 42},
                                .echo_at = g->at,
                                .samples = N,
                                .owners = {.nodes = 5, .groups = 1, .of = {owner}},
                                .cost = g->window ? cost_of : NULL,
                                .balance = 1020000,
                                .window = g->window};
        struct plan_summary s;
        uint32_t *list = list_of(&in, &s);
        is_str(digest_format(&s.digest, text), g->digest, "%s", g->what);
        if (g->mode == PLAN_REGULAR && g->tail == TAIL_DROP) {
            in.count = 990;
            struct digest d = digest_lists(&in, list, 66, s.steps);
            is_mem(&d, &s.digest, sizeof d, "%s: it is the digest of the lists", g->what);
        }
        free(list);
    }
}

struct stopper {
    int asked, until;
};

static bool stop_then(void *user)
{
    struct stopper *s = user;
    return ++s->asked > s->until;
}

/* It can be interrupted at every question, and then gives what it would have given at once. */
static void test_interrupt(void)
{
    enum { N = 300000, MOST = 1000 };
    uint32_t *order = malloc(N * sizeof *order), *list = malloc(4 * N * sizeof *list);
    uint16_t *owner = malloc(N * sizeof *owner);
    fill(order, owner, N, 16, 1);
    for (int mode = PLAN_LOCALITY; mode <= PLAN_LOCAL; mode++) {
        struct plan_input in = {.order = order,
                                .count = N,
                                .ranks = 16,
                                .batch = 8,
                                .mode = (enum plan_mode)mode,
                                .echo = {1500000, 1000, 0},
                                .samples = N,
                                .owners = {.nodes = 16, .groups = 1, .of = {owner}}};
        struct plan_summary s;
        int until = 0, interrupted = 0, error = -EINTR;
        for (; error == -EINTR && until < MOST; until++) {
            struct stopper stopper = {0, until};
            const struct plan_stop stop = {stop_then, &stopper};
            CLEANUP_STR struct str why = STR_INIT;
            struct plan *plan = NULL;
            error = plan_create(&in, &stop, &plan, &why);
            if (!error)
                error = plan_run(plan, list, &stop, &s);
            interrupted += error == -EINTR;
            plan_destroy(plan);
        }
        is_int(error, 0, "mode %d: done in the end", mode);
        ok(interrupted >= 10, "mode %d: after it was interrupted at %d places", mode, interrupted);
    }
    free(order);
    free(list);
    free(owner);
}

/* Figure 6: the median share of a batch that must move, whatever the number of nodes. */
static void test_imbalance(void)
{
    enum { N = 400000 };
    static const struct {
        uint32_t batch, low, high; /* in hundredths of a percent, the mean of an epoch */
    } paper[] = {{32, 660, 720}, {64, 450, 510}, {128, 310, 370}};
    uint32_t *order = malloc(N * sizeof *order);
    uint16_t *owner = malloc(N * sizeof *owner);
    for (uint32_t nodes = 16; nodes <= 256; nodes *= 4)
        for (size_t i = 0; i < sizeof paper / sizeof paper[0]; i++) {
            struct plan_input in = {.order = order,
                                    .count = N,
                                    .ranks = nodes,
                                    .batch = paper[i].batch,
                                    .tail = TAIL_DROP,
                                    .echo = {ECHO_ONE},
                                    .owners = {.nodes = nodes, .groups = 1, .of = {owner}}};
            struct plan_summary s;
            fill(order, owner, N, nodes, nodes + i);
            free(list_of(&in, &s));
            uint64_t share = s.moved * 10000 / s.samples;
            ok(share >= paper[i].low && share <= paper[i].high,
               "%" PRIu32 " nodes, batch %" PRIu32 ": %" PRIu64 " of 10000 move", nodes, paper[i].batch, share);
            ok(s.transfers <= s.steps * (nodes - 1), "%" PRIu32 " nodes: transfers", nodes);
        }
    free(order);
    free(owner);
}

static void test_odd(void)
{
    static const uint32_t order[] = {0};
    static const uint16_t owner[] = {0};
    struct plan_input in = {.order = order,
                            .count = 1,
                            .ranks = 1000,
                            .batch = 1u << 30,
                            .echo = {ECHO_ONE},
                            .owners = {.nodes = 1, .groups = 1, .of = {owner}}};
    struct plan_summary s;
    uint32_t *list = list_of(&in, &s);
    is_uint(s.samples, 1000, "one sample for a thousand ranks, each gets it");
    is_uint(s.steps, 1, "in one step");
    free(list);
    in.tail = TAIL_DROP;
    list = list_of(&in, &s);
    is_uint(s.steps, 0, "dropped: nothing is left");
    is_uint(s.unread, 1, "and the one unread");
    free(list);
    in.tail = TAIL_SHORT;
    list = list_of(&in, &s);
    is_uint(s.samples, 1, "short: one rank has it");
    free(list);
    in.count = 0;
    list = list_of(&in, &s);
    is_uint(s.steps, 0, "nothing at all");
    free(list);
    plan_destroy(NULL);
}

int main(void)
{
    test_paper();
    test_balance();
    test_golden();
    test_interrupt();
    test_imbalance();
    test_odd();
    return done_testing();
}
