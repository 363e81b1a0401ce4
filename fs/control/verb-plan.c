/* `plan`: deals an epoch. It finds sample list, order and owners from the request's line and payload, then a cached
 * plan or makes a new one, then returns the requested lists. */
#include "fs/control/verb-plan.h"

#include "fs/control/control-private.h"
#include "fs/control/feed-table.h"
#include "fs/control/lists.h"
#include "fs/control/owners.h"
#include "fs/control/plan-cost.h"
#include "fs/control/plan-order.h"
#include "fs/control/plan-paths.h"
#include "fs/control/plan-units.h"
#include "fs/control/plan-view.h"
#include "fs/control/plans.h"
#include "fs/control/verbs.h"
#include "fs/control/world-view.h"

#include "fs/base/cleanup.h"
#include "fs/base/json.h"
#include "fs/plan/list-format.h"
#include "fs/plan/order-digest.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* The inputs of a plan. */
struct making {
    struct control *control;
    const struct plan_question *question;
    const struct plan_request *wanted; /* the question's */
    struct plan_stop stop;
    struct samples *list, *without; /* without: samples to leave out, or NULL */
    struct owner_table *table;
    uint32_t *node_of_rank; /* NULL: evenly distributed */
    struct plan_units units;
    struct plan_memory order, local;
    struct plan_cost cost;
    struct charge charge; /* for intermediate data, including the list */
    struct str *why;
};

static void making_fini(struct making *m)
{
    plan_cost_fini(&m->cost);
    samples_put(m->list);
    samples_put(m->without);
    owners_put(m->control, m->table);
    free(m->node_of_rank);
    plan_units_fini(&m->units);
    plan_memory_fini(&m->order);
    plan_memory_fini(&m->local);
    charge_fini(&m->charge);
}

static int place_ranks(struct making *m)
{
    const struct owner_table *t = m->table;
    CLEANUP_FREE const char **host = NULL;
    m->units = (struct plan_units){.owners = t->owners, .me = t->me};
    if (!m->wanted->nodes)
        return 0;
    host = calloc(t->owners.nodes, sizeof *host);
    m->node_of_rank = calloc(m->wanted->ranks, sizeof *m->node_of_rank);
    m->units.of_node = calloc(t->owners.nodes, sizeof *m->units.of_node);
    if (!host || !m->node_of_rank || !m->units.of_node)
        return str_no_memory(m->why);
    for (uint32_t v = 0; v < t->owners.nodes; v++)
        host[v] = t->host[v];
    struct plan_places places = {m->node_of_rank, m->units.of_node, 0};
    int error = plan_request_nodes(m->wanted, host, t->owners.nodes, &places, m->why);
    m->units.owners.nodes = places.units;
    return error ? error : plan_units_join(&m->units, t, samples_count(m->list), &m->charge, m->why);
}

/* A node without a layout may have joined a world meanwhile: then that world's layout is used. */
static int making_prepare(struct making *m)
{
    static const struct digest none;
    int error = m->wanted->pinned ? 0 : world_view_await(m->control, m->question->asker, m->why);
    struct digest layout = owners_layout(m->control, m->wanted);
    if (!error)
        error = lists_choose(m->control, m->wanted, m->question->asker, &m->charge, &m->list);
    if (!error)
        error = owners_find(m->control, m->list, m->wanted->pinned || !digest_equal(&layout, &none) ? &layout : NULL,
                            m->question->asker, &m->table);
    if (!error && m->wanted->without)
        error = lists_get(m->control, m->wanted->without, m->question->asker, &m->without);
    if (!error)
        error = plan_cost_find(m->control, m->list, m->wanted, m->question->asker, &m->cost);
    return error ? error : place_ranks(m);
}

/* The hash of all inputs but order and owners. */
static struct digest making_terms(const struct making *m)
{
    const struct plan_request *w = m->wanted;
    struct {
        struct digest list, without, cost;
        uint64_t epoch, skip, from, to;
        uint32_t ranks, batch, mode, tail, echo, echo_at, echo_buffer, balance, window, chosen;
    } made_of = {
        .list = *samples_digest(m->list),
        .cost = m->cost.digest,
        .epoch = w->epoch,
        .skip = w->skip,
        .from = w->from,
        .to = w->to,
        .ranks = w->ranks,
        .batch = w->batch,
        .mode = w->mode,
        .tail = w->tail,
        .echo = w->echo,
        .echo_at = w->echo_at,
        .echo_buffer = w->echo_buffer,
        .balance = w->cost ? w->balance : 0,
        .window = w->cost ? w->window : 0,
        .chosen = w->chosen,
    };
    if (m->without)
        made_of.without = *samples_digest(m->without);
    return hash128(&made_of, sizeof made_of, 0);
}

/* The hash of all inputs, without which part of the plan is requested. With the hash of the numbers it is the digest of
 * the plan: what covers less would let ranks with other samples, or in other places, agree. */
static struct digest making_key(const struct making *m, const struct digest *terms)
{
    const struct plan_request *w = m->wanted;
    struct {
        struct digest terms, layout, nodes, units, payload;
        uint64_t seed;
        uint32_t order, distinct;
    } made_of = {
        .terms = *terms,
        .layout = m->table->layout,
        .nodes = hash128(m->node_of_rank, m->node_of_rank ? w->ranks * sizeof *m->node_of_rank : 0, 0),
        .payload = hash128(m->question->payload, plan_request_has_payload(w) ? m->question->payload_length : 0, 0),
        .seed = w->seed,
        .order = w->order,
        .distinct = w->distinct,
    };
    if (m->node_of_rank)
        made_of.units = hash128(m->units.of_node, m->table->owners.nodes * sizeof *m->units.of_node, 0);
    return hash128(&made_of, sizeof made_of, 0);
}

static uint64_t sample_bytes(void *user, uint32_t sample)
{
    const struct making *m = user;
    return samples_length(m->list, sample);
}

static uint64_t sample_cost(void *user, uint32_t sample)
{
    const struct making *m = user;
    return plan_cost_of(&m->cost, m->list, sample);
}

static int fill_planned(struct making *m, struct plan *plan, struct planned *planned)
{
    planned->layout = m->table->layout;
    planned->terms = making_terms(m);
    planned->epoch = m->wanted->epoch;
    planned->batch = m->wanted->batch;
    planned->mode = m->wanted->mode;
    planned->costed = m->wanted->cost && m->wanted->ranks > 1;
    planned->shape = plan_shape(plan);
    uint64_t bytes = plan_length_all(plan) * sizeof *planned->lists;
    charge_cut(&planned->memory.charge, bytes);
    int error = plan_memory_make(m->control, bytes, &planned->memory, m->why);
    planned->lists = planned->memory.bytes;
    if (error)
        return error;
    error = plan_run(plan, planned->lists, &m->stop, &planned->summary);
    const struct digest pair[] = {planned->summary.digest, planned->item.key};
    planned->summary.digest = hash128(pair, sizeof pair, 0);
    if (error == -ERANGE)
        str_adds(m->why, "`cost`: the samples of a step, or of a window, cost more than 2^52 together");
    return error == -ENOMEM ? str_no_memory(m->why) : error;
}

static int take_memory(struct making *m, struct plan_input *input, struct planned *planned)
{
    uint64_t local = plan_local_most(input) * sizeof *input->local;
    uint64_t lists = plan_entries_most(input) * sizeof *planned->lists;
    const struct plan_memory_of of = {m->control, m->list, &m->charge};
    int error = local ? plan_memory_take(&of, local, &m->local, m->why) : 0;
    input->local = m->local.bytes;
    if (!error)
        error = charge_add(&m->charge, plan_memory_most(input), m->why);
    return error ? error : plan_memory_charge(&of, lists, &planned->memory, m->why);
}

static int make_plan(struct making *m, struct planned *planned)
{
    const struct plan_request *w = m->wanted;
    uint32_t count;
    struct plan *plan;
    const struct plan_memory_of of = {m->control, m->list, &m->charge};
    int error = plan_order_make(&of, m->question, m->without, &m->order, &count);
    if (error)
        return error;
    struct plan_input input = {.order = m->order.bytes,
                               .count = count,
                               .ranks = w->ranks,
                               .batch = w->batch,
                               .mode = w->mode,
                               .tail = w->tail,
                               .skip = w->skip,
                               .echo_at = w->echo_at,
                               .echo = {w->echo, w->echo_buffer, w->seed + w->epoch},
                               .samples = samples_count(m->list),
                               .owners = m->units.owners,
                               .node_of_rank = m->node_of_rank,
                               .bytes = sample_bytes,
                               .cost = w->cost ? sample_cost : NULL,
                               .balance = w->balance,
                               .window = w->window,
                               .chosen = w->chosen,
                               .from = w->from,
                               .to = w->to,
                               .user = m,
                               .bytes_of_all = plan_request_has_payload(w) || m->without ? 0 : m->table->bytes};
    error = take_memory(m, &input, planned);
    if (!error)
        error = plan_create(&input, &m->stop, &plan, m->why);
    if (error)
        return error;
    error = fill_planned(m, plan, planned);
    plan_destroy(plan);
    return error;
}

/* With `digest` the order may be left out: the plan may be cached. It may be of owners that are no longer known here.
 * But its numbers are of the same samples. */
static int find_plan(struct making *m, struct planned **planned)
{
    struct plans *plans = m->control->plans;
    struct digest terms = making_terms(m);
    if (m->wanted->digested && (*planned = plans_find(plans, &m->wanted->digest, &terms)))
        return 0;
    struct digest key = making_key(m, &terms);
    int turn = plans_get(plans, &key, m->question->asker, planned);
    if (turn <= 0)
        return turn;
    int error = make_plan(m, *planned);
    if (error)
        plans_failed(plans, *planned);
    else
        plans_made(plans, *planned);
    return error;
}

/* --- replies --- */

/* The stream refers to the list: if only this request has the list, the stream takes its memory over. */
static int reply_stream(const struct making *m, const struct stream_identity *of, const uint32_t *list, uint64_t n)
{
    struct epoch_stream **stream = m->question->stream;
    if (stream) {
        struct charge *charge = m->question->asker->charge;
        uint64_t each = samples_records(m->list) ? sizeof(struct record) : sizeof(uint32_t);
        bool own = m->wanted->under || m->wanted->match;
        int error = own ? charge_add(charge, samples_count(m->list) * each, m->why) : 0;
        const struct stream_terms terms = {
            m->list, list, n, m->wanted->unique_keys, samples_table_directory(m->control->samples), *of};
        return error ? error : epoch_stream_create(&terms, charge, stream, m->why);
    }
    return str_fail(m->why, -EOPNOTSUPP, "`reply=bytes` is a file: open `.dealfs/plan/KEY=VALUE,...,reply=bytes`");
}

static struct stream_identity identity_of(const struct making *m, const struct planned *planned, const uint32_t *list,
                                          uint64_t n)
{
    struct stream_identity of = {.epoch = planned->epoch,
                                 .digest = planned->summary.digest,
                                 .samples = n,
                                 .rank = m->wanted->rank,
                                 .workers = m->wanted->workers,
                                 .worker = m->wanted->worker};
    for (uint64_t i = 0; m->wanted->reply == REPLY_BYTES && i < n; i++)
        of.bytes += samples_length(m->list, list[i]);
    return of;
}

/* One rank's list, or a worker's part of it. */
static int reply_list(struct making *m, const struct planned *planned, struct str *reply)
{
    const struct plan_request *w = m->wanted;
    const uint32_t *list = planned->lists + plan_shape_place(&planned->shape, w->rank);
    uint64_t n = plan_shape_length(&planned->shape, w->rank);
    uint64_t most = format_most(w->reply, &planned->shape, samples_count(m->list), w->rank) + sizeof(uint64_t);
    const struct stream_identity of = identity_of(m, planned, list, n);
    CLEANUP_FREE uint32_t *part = NULL;
    int error = w->workers > 1 ? charge_add(&m->charge, n * sizeof *part, m->why) : 0;
    if (!error && w->workers > 1) {
        part = malloc((n + 1) * sizeof *part);
        n = part ? format_part(w, list, n, part) : 0;
        error = part ? 0 : str_no_memory(m->why);
        list = part;
    }
    if (!error && w->reply == REPLY_BYTES)
        return reply_stream(m, &of, list, n);
    if (!error)
        error = charge_reach(m->question->asker->charge, most, m->why);
    if (!error && w->reply == REPLY_SPANS)
        error = epoch_stream_spans(m->list, list, n, reply, m->why);
    else if (!error && str_reserve(reply, most))
        format_list(reply, w->reply, list, n);
    return error;
}

static struct plan_ranks ranks_of(const struct making *m)
{
    return (struct plan_ranks){m->node_of_rank, m->wanted->ranks, m->table->owners.nodes, m->units.me};
}

static int visit_sample(void *making, uint64_t step, uint32_t rank, uint32_t sample)
{
    const struct making *m = making;
    (void)step, (void)rank;
    return m->question->visit(m->question->user, m->list, sample);
}

static int reply_with(struct making *m, const struct planned *planned)
{
    struct str *reply = m->question->asker->reply;
    struct json json = {.out = reply};
    const struct plan_request *w = m->wanted;
    if (m->question->visit)
        return plan_walk(&(struct plan_listing){m->list, w, &planned->shape, planned->lists}, visit_sample, m);
    if (w->reply == REPLY_PATHS)
        return plan_paths(&(struct plan_listing){m->list, w, &planned->shape, planned->lists},
                          m->control->config.catalog, m->question->asker);
    if (w->reply != REPLY_SUMMARY && w->rank != PLAN_ALL_RANKS)
        return reply_list(m, planned, reply);
    if (w->reply != REPLY_SUMMARY) {
        uint64_t most = format_most(w->reply, &planned->shape, samples_count(m->list), w->rank);
        int error = charge_reach(m->question->asker->charge, most, m->why);
        if (!error && str_reserve(reply, most))
            format_lists(reply, w->reply, &planned->shape, planned->lists, w->rank);
        return error;
    }
    const struct plan_ranks ranks = ranks_of(m);
    struct order_digest order;
    char text[ORDER_DIGEST_TEXT];
    int error = plan_order_digest(m->question, m->list, m->without, &order);
    if (error)
        return error;
    json_begin_object(&json, NULL);
    plan_view_add(&json, planned);
    json_string(&json, "order", order_digest_format(&order, text));
    plan_view_add_lacking(&json, m->control, w);
    plan_view_add_held(&json, planned, &ranks, m->list, m->control->config.store);
    json_end_object(&json);
    str_adds(reply, "\n");
    return 0;
}

/* Does the asking rank run on this node? A plan found by its digest may be of another world; then this is unknown. */
static void count_misplaced(const struct making *m)
{
    const struct plan_request *w = m->wanted;
    if (w->rank == PLAN_ALL_RANKS || w->reply == REPLY_SUMMARY || m->question->visit)
        return;
    const struct plan_ranks ranks = ranks_of(m);
    uint32_t node = plan_ranks_node(&ranks, w->rank);
    if (node == m->units.me || node == UINT32_MAX)
        return;
    LOCK_SCOPE(&m->control->plans->kept.lock);
    m->control->plans->misplaced++;
}

/* Only for the mount's owner, so that other users cannot displace the owner's plans. The feeder's own requests are
 * guesses. */
static void wish_feed(const struct making *m, const struct planned *planned)
{
    const struct feed *feed = m->control->config.feed;
    const struct feed_wish wish = {
        .wanted = m->wanted,
        .layout = &planned->layout,
        .digest = &planned->summary.digest,
        .node_of_rank = m->node_of_rank,
        .nodes = m->table->owners.nodes,
        .me = m->units.me,
        .guess = feed && m->question->asker->pid == (pid_t)atomic_load(&feed->feeder) && m->question->asker->pid > 0,
    };
    if (m->wanted->feed && !m->charge.other)
        feed_table_ask(m->control, &wish);
}

int plan_answer(struct control *control, const struct plan_question *question, struct plan_origin *origin)
{
    const struct asker *asker = question->asker;
    struct making m = {.control = control,
                       .question = question,
                       .wanted = &question->wanted,
                       .why = asker->why,
                       .charge = charge_like(asker->charge),
                       .stop = {asker->gave_up, asker->user}};
    struct planned *planned;
    int error = making_prepare(&m);
    if (!error)
        error = plan_order_resume(question, m.list, m.without, m.table->owners.nodes);
    if (!error)
        error = find_plan(&m, &planned);
    if (!error) {
        if (m.wanted->digested && !digest_equal(&planned->summary.digest, &m.wanted->digest)) {
            error = str_fail(asker->why, -ESTALE,
                             "`digest`: these keys give another plan, and the plan with this digest is not cached");
        } else {
            error = reply_with(&m, planned);
        }
        *origin = (struct plan_origin){planned->layout, planned->item.key};
        plans_put(control->plans, planned);
        if (!error) {
            count_misplaced(&m);
            wish_feed(&m, planned);
        }
        str_add(asker->reply, "", 0);
    }
    making_fini(&m);
    return error;
}

static int plan_verb_run(struct control *control, const struct request *request, const struct asker *asker)
{
    struct plan_question question = {
        .payload = request->payload, .payload_length = request->payload_length, .asker = asker};
    struct plan_origin origin;
    int error = plan_request_parse(request->value, &question.wanted, asker->why);
    if (error)
        return error;
    if (!plan_request_has_payload(&question.wanted) &&
        !request_only_line_ends(request->payload, request->payload_length))
        return str_fail(asker->why, -EINVAL, "`plan` takes a payload only with `order=u32`, `u64` or `text`");
    return plan_answer(control, &question, &origin);
}

const struct verb verb_plan = {
    .name = "plan",
    .about = "deal an epoch's order to the ranks; payload: the order (order=u32, u64, text); reply: the lists",
    .keys = plan_keys,
    .payload_most = PAYLOAD_MOST,
    .run = plan_verb_run,
};
