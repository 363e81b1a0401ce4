/* Fuzz target: `plan` requests as the control file takes them, with the verb's real keys. The line, the values of its
 * keys, the names of `nodes`, the order in the payload; and where all that is accepted, the plan, of a small list on a
 * few nodes, whose lists must be of samples that there are, as long as the plan said, and the same again. */
#include "fs/base/size.h"
#include "fs/control/protocol.h"
#include "fs/plan/list-format.h"
#include "fs/plan/order.h"
#include "fs/plan/plan-request.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* What is planned is kept small: RANKS by BATCH may be absurd in a request, and that is the parser's to bear. */
enum { SAMPLES = 97, NODES = 3, RANKS_PLANNED = 512, ENTRIES_MOST = 1 << 16 };

static const struct verb verb_plan = {.name = "plan", .keys = plan_keys, .payload_most = 1 << 20};
static const struct verb *const verbs[] = {&verb_plan, NULL};
static const char *const hosts[NODES] = {"alpha", "beta", "beta"};

static bool never(void *user)
{
    (void)user;
    return false;
}
static const struct plan_stop go_on = {never, NULL};

static void check_reason(int error, const struct str *why)
{
    if (error >= 0 || why->length == 0 || memchr(why->data, '\n', why->length))
        abort();
}

static void check_values(const struct plan_request *r)
{
    if (r->ranks < 1 || r->ranks > PLAN_RANKS_MOST || r->batch < 1 || r->echo < 1000000 || r->echo > 1000000000)
        abort();
    if ((r->rank != PLAN_ALL_RANKS && r->rank >= r->ranks) || !r->samples)
        abort();
    if (r->mode > PLAN_LOCAL || r->tail > TAIL_SHORT || r->reply > REPLY_SPANS || r->order > PLAN_ORDER_NATURAL)
        abort();
}

/* The same lists again, and as text. */
static void check_lists(struct plan *plan, const struct plan_request *r, const uint32_t *list,
                        const struct digest *digest)
{
    CLEANUP_STR struct str text = STR_INIT;
    struct plan_shape shape = plan_shape(plan);
    struct plan_summary summary;
    uint64_t all = plan_length_all(plan), sum = 0;
    uint32_t *again = malloc((all + 1) * sizeof *again);
    for (uint64_t i = 0; i < all; i++)
        if (list[i] >= SAMPLES)
            abort();
    for (uint32_t rank = 0; rank < r->ranks; rank++)
        sum += plan_shape_length(&shape, rank);
    if (sum != all || plan_shape_place(&shape, r->ranks) != all)
        abort();
    if (again && (plan_run(plan, again, &go_on, &summary) != 0 ||
                  memcmp(&summary.digest, digest, sizeof *digest) != 0 || memcmp(again, list, all * sizeof *list) != 0))
        abort();
    free(again);
    format_lists(&text, r->reply >= REPLY_SUMMARY ? REPLY_TEXT : r->reply, &shape, list, r->rank);
}

static uint64_t cost_of(void *user, uint32_t sample)
{
    (void)user;
    return sample * UINT64_C(7919) % 97;
}

static void make(const struct plan_request *r, const uint32_t *order, uint32_t count, const uint32_t *node_of_rank)
{
    CLEANUP_STR struct str why = STR_INIT;
    uint16_t owner[2][SAMPLES];
    struct plan_summary summary;
    struct plan *plan;
    for (int i = 0; i < SAMPLES; i++) {
        owner[0][i] = i % 11 == 0 ? 0xffff : (uint16_t)(i % NODES);
        owner[1][i] = (uint16_t)(i / 33);
    }
    const struct plan_input in = {.order = order,
                                  .count = count,
                                  .ranks = r->ranks,
                                  .batch = r->batch,
                                  .mode = r->mode,
                                  .tail = r->tail,
                                  .skip = r->skip,
                                  .echo_at = r->echo_at,
                                  .echo = {r->echo, r->echo_buffer, r->seed + r->epoch},
                                  .samples = SAMPLES,
                                  .owners = {.nodes = NODES, .groups = 1 + r->seed % 2, .of = {owner[0], owner[1]}},
                                  .node_of_rank = node_of_rank,
                                  .cost = r->cost ? cost_of : NULL,
                                  .balance = r->balance,
                                  .window = r->window};
    int error = plan_create(&in, &go_on, &plan, &why);
    if (error) {
        check_reason(error, &why);
        return;
    }
    uint64_t all = plan_length_all(plan);
    uint32_t *list = all <= ENTRIES_MOST ? malloc((all + 1) * sizeof *list) : NULL;
    if (list) {
        if (plan_run(plan, list, &go_on, &summary) != 0)
            abort();
        check_lists(plan, r, list, &summary.digest);
    }
    free(list);
    plan_destroy(plan);
}

static int make_order(const struct plan_request *r, const struct request *request, uint32_t **order, uint32_t *count,
                      struct str *why)
{
    static const enum order_form form[] = {
        [PLAN_ORDER_U32] = ORDER_U32, [PLAN_ORDER_U64] = ORDER_U64, [PLAN_ORDER_TEXT] = ORDER_TEXT};
    if (plan_request_has_payload(r)) {
        const struct order_rules rules = {form[r->order], SAMPLES, r->distinct, &go_on};
        return order_given(&rules, request->payload, request->payload_length, order, count, why);
    }
    *order = malloc((SAMPLES + 1) * sizeof **order);
    *count = SAMPLES;
    return r->order == PLAN_ORDER_NATURAL ? order_natural(*order, SAMPLES, &go_on)
                                          : order_seeded(*order, SAMPLES, r->seed + r->epoch, &go_on);
}

static void plan_it(const struct plan_request *r, const struct request *request)
{
    CLEANUP_STR struct str why = STR_INIT;
    uint32_t node_of_rank[RANKS_PLANNED], unit[NODES], *order = NULL, count = 0;
    struct plan_places places = {node_of_rank, unit, 0};
    int error = r->nodes ? plan_request_nodes(r, hosts, NODES, &places, &why) : 0;
    if (!error)
        error = make_order(r, request, &order, &count, &why);
    if (!error) {
        for (uint32_t i = 0; i < count; i++)
            if (order[i] >= SAMPLES)
                abort();
        make(r, order, count, r->nodes ? node_of_rank : NULL);
        free(order);
    } else {
        check_reason(error, &why);
    }
}

static void ask(const struct request *request)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct plan_request r;
    int error = plan_request_parse(request->value, &r, &why);
    if (error) {
        check_reason(error, &why);
        return;
    }
    check_values(&r);
    if (r.ranks <= RANKS_PLANNED)
        plan_it(&r, request);
}

/* A name below plan/: the same keys, with commas between them. */
static void ask_by_name(const char *bytes, size_t n)
{
    struct request request = REQUEST_INIT;
    CLEANUP_STR struct str why = STR_INIT;
    char *text = malloc(n + 1);
    if (!text)
        return;
    memcpy(text, bytes, n);
    text[n] = '\0';
    int error = keys_parse(&(struct key_words){plan_keys, "plan", ','}, text, n, request.value, &why);
    if (error)
        check_reason(error, &why);
    else
        ask(&request);
    free(text);
}

static void parse(const char *bytes, size_t n)
{
    CLEANUP_REQUEST struct request request = REQUEST_INIT;
    CLEANUP_STR struct str why = STR_INIT;
    int error = request_parse(verbs, bytes, n, &request, &why);
    if (!error)
        ask(&request);
    else
        check_reason(error, &why);
}

/* A line that is right, made of the first bytes; the others follow it: more keys, or the payload. */
static void frame(const uint8_t *data, size_t n)
{
    static const char *const mode[] = {"locality", "regular", "local"}, *const tail[] = {"pad", "drop", "short"};
    static const char *const order[] = {
        "", " order=u32", " order=u64", " order=text", " order=natural", " nodes=0,2,1"};
    CLEANUP_STR struct str text = STR_INIT;
    enum { HEAD = 8 };
    if (n < HEAD)
        return;
    str_addf(&text, "plan epoch=%u ranks=%u batch=%u mode=%s tail=%s%s", data[0], data[1] % 20 + 1, data[2] % 24 + 1,
             mode[data[3] % 3], tail[data[3] / 3 % 3], order[data[4] % 6]);
    if (data[5] & 1)
        str_addf(&text, " echo=%u.%02u echo_at=%s echo_buffer=%u", data[6] / 25 + 1, data[6] % 25,
                 data[5] & 2 ? "batch" : "example", data[5] >> 3);
    if (data[5] & 4)
        str_adds(&text, " distinct=no");
    if (data[5] & 8)
        str_addf(&text, " cost=bytes window=%u", data[5] & 2 ? 1 : data[6] % 5 + 1);
    str_addf(&text, " skip=%u", data[7] < 200 ? data[7] / 2 : 0);
    str_add(&text, (const char *)data + HEAD, n - HEAD);
    if (!text.failed)
        parse(text.data, text.length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    parse((const char *)data, n);
    ask_by_name((const char *)data, n);
    frame(data, n);
    return 0;
}
