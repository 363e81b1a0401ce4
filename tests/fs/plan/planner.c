/* The planner as a program, for tests in other languages. Reads requests from stdin until its end:
 *
 *   order N SEED\n                      reply: N raw u32
 *   plan KEY=NUMBER …\n                 then raw: owners (groups × samples u16), the order (count u32), with
 *                                       placed=1 the node of each rank (ranks u32), with cost=1 costs (samples u32)
 *
 * The reply to a plan is `refused ERRNO WHY\n`, or a line of KEY=VALUE pairs and then for each rank the length of its
 * list (u64) and the list (u32). */
#include "fs/base/cleanup.h"
#include "fs/plan/order.h"
#include "fs/plan/epoch-plan.h"
#include "tests/lib/requests.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MOST = 4096 };

static void put_lists(const struct plan *plan, uint32_t ranks, const uint32_t *list)
{
    struct plan_shape shape = plan_shape(plan);
    for (uint32_t r = 0; r < ranks; r++) {
        uint64_t length = plan_shape_length(&shape, r);
        fwrite(&length, sizeof length, 1, stdout);
        fwrite(list, sizeof *list, length, stdout);
        list += length;
    }
}

static uint64_t one_and(void *user, uint32_t sample)
{
    (void)user;
    return sample + 1;
}

static uint64_t cost_of(void *user, uint32_t sample)
{
    const uint32_t *cost = user;
    return cost[sample];
}

static int answer(const struct plan_input *input)
{
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_FREE uint32_t *list = NULL;
    struct plan_summary s;
    struct plan *plan;
    char digest[DIGEST_TEXT];
    int error = plan_create(input, NULL, &plan, &why);
    if (error) {
        printf("refused %d %s\n", -error, why.length ? why.data : "");
        return 0;
    }
    list = malloc((plan_length_all(plan) + 1) * sizeof *list);
    error = list ? plan_run(plan, list, NULL, &s) : -1;
    if (error)
        return 1;
    printf("steps=%" PRIu64 " samples=%" PRIu64 " local=%" PRIu64 " moved=%" PRIu64 " unowned=%" PRIu64
           " transfers=%" PRIu64 " moved_bytes=%" PRIu64 " unowned_bytes=%" PRIu64 " unread=%" PRIu64 " fresh=%" PRIu64
           " fresh_bytes=%" PRIu64 " refetched=%" PRIu64 " duplicates=%" PRIu64 " digest=%s swaps=%" PRIu64
           " swapped_moved=%" PRId64 " swapped_bytes=%" PRId64 " median_before=%" PRIu32 " worst_before=%" PRIu32
           " median_after=%" PRIu32 " worst_after=%" PRIu32 "\n",
           s.steps, s.samples, s.local, s.moved, s.unowned, s.transfers, s.moved_bytes, s.unowned_bytes, s.unread,
           s.fresh, s.fresh_bytes, s.refetched, s.duplicates, digest_format(&s.digest, digest), s.costs.swaps,
           s.costs.moved, s.costs.moved_bytes, s.costs.median_before, s.costs.worst_before, s.costs.median_after,
           s.costs.worst_after);
    put_lists(plan, input->ranks, list);
    plan_destroy(plan);
    return 0;
}

/* Of all samples, as one_and() has them; 0: the order does not have each of them once. */
static uint64_t sum_all(const struct plan_input *input)
{
    CLEANUP_FREE bool *seen = calloc(input->samples + 1, sizeof *seen);
    uint64_t bytes = 0;
    for (uint32_t i = 0; seen && i < input->count && !seen[input->order[i]]; i++) {
        seen[input->order[i]] = true;
        bytes += one_and(NULL, input->order[i]);
    }
    uint64_t all = input->samples * (input->samples + UINT64_C(1)) / 2;
    return seen && input->count == input->samples && bytes == all ? all : 0;
}

static int plan(const char *line)
{
    uint32_t samples = (uint32_t)request_number(line, "samples", 0);
    struct plan_input input = {
        .count = (uint32_t)request_number(line, "count", 0),
        .ranks = (uint32_t)request_number(line, "ranks", 1),
        .batch = (uint32_t)request_number(line, "batch", 1),
        .mode = (enum plan_mode)request_number(line, "mode", PLAN_LOCALITY),
        .tail = (enum plan_tail)request_number(line, "tail", TAIL_PAD),
        .skip = request_number(line, "skip", 0),
        .echo_at = (enum plan_echo_at)request_number(line, "echo_at", ECHO_AT_EXAMPLE),
        .echo = {(uint32_t)request_number(line, "echo", ECHO_ONE), (uint32_t)request_number(line, "echo_buffer", 0),
                 request_number(line, "seed", 0)},
        .samples = samples,
        .owners = {.nodes = (uint32_t)request_number(line, "nodes", 1),
                   .groups = (uint32_t)request_number(line, "groups", 1)},
        .bytes = request_number(line, "bytes", 0) ? one_and : NULL,
        .cost = request_number(line, "cost", 0) ? cost_of : NULL,
        .balance = (uint32_t)request_number(line, "balance", 0),
        .window = (uint32_t)request_number(line, "window", 1),
        .chosen = request_number(line, "chosen", 0),
        .from = request_number(line, "from", 0),
        .to = request_number(line, "to", 0),
    };
    CLEANUP_FREE uint16_t *owner = request_take((size_t)input.owners.groups * samples * sizeof *owner);
    CLEANUP_FREE uint32_t *order = request_take((size_t)input.count * sizeof *order);
    CLEANUP_FREE uint32_t *placed =
        request_number(line, "placed", 0) ? request_take(input.ranks * sizeof *placed) : NULL;
    CLEANUP_FREE uint32_t *cost = input.cost ? request_take(samples * sizeof *cost) : NULL;
    for (uint32_t g = 0; g < input.owners.groups && g < PLAN_GROUPS_MOST; g++)
        input.owners.of[g] = owner + (size_t)g * samples;
    input.order = order;
    input.node_of_rank = placed;
    input.user = cost;
    input.bytes_of_all = sum_all(&input);
    return answer(&input);
}

static int order(const char *line)
{
    unsigned n;
    uint64_t seed;
    if (sscanf(line, "order %u %" SCNu64, &n, &seed) != 2)
        return 2;
    CLEANUP_FREE uint32_t *made = malloc((n + 1ul) * sizeof *made);
    if (!made || order_seeded(made, n, seed, NULL))
        return 1;
    fwrite(made, sizeof *made, n, stdout);
    return 0;
}

int main(void)
{
    char line[LINE_MOST];
    while (fgets(line, sizeof line, stdin)) {
        int status = strncmp(line, "plan", 4) == 0 ? plan(line) : order(line);
        if (status)
            return status;
        fflush(stdout);
    }
    return 0;
}
