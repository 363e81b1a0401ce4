/* `plan`: deal an epoch. From the request's line and payload to sample list, order and owners; then either a plan that
 * was made already, or a new one; then its lists, as they were asked for. */
#include "fs/control/verb-plan.h"

#include "fs/control/control-private.h"
#include "fs/control/feed-table.h"
#include "fs/control/lists.h"
#include "fs/control/owners.h"
#include "fs/control/world-view.h"

#include "fs/base/cleanup.h"
#include "fs/base/json.h"
#include "fs/plan/list-format.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* All that a plan is made of. */
struct making {
    struct control *control;
    const struct plan_question *question;
    const struct plan_request *wanted; /* the question's */
    struct plan_stop stop;
    struct samples *list;
    struct owner_table *table;
    uint32_t *node_of_rank; /* NULL: evenly */
    struct charge charge;   /* for what is made on the way, list and order among it */
    struct str *why;
};

static void making_fini(struct making *m)
{
    samples_put(m->list);
    owners_put(m->table);
    free(m->node_of_rank);
    charge_fini(&m->charge);
}

static int place_ranks(struct making *m)
{
    const struct owner_table *t = m->table;
    CLEANUP_FREE const char **host = NULL;

    if (!m->wanted->nodes)
        return 0;
    host = calloc(t->owners.nodes, sizeof *host);
    m->node_of_rank = calloc(m->wanted->ranks, sizeof *m->node_of_rank);
    if (!host || !m->node_of_rank)
        return str_no_memory(m->why);
    for (uint32_t v = 0; v < t->owners.nodes; v++)
        host[v] = t->host[v];
    return plan_request_nodes(m->wanted, host, t->owners.nodes, m->node_of_rank, m->why);
}

struct digest plan_layout(struct control *control, const struct plan_request *wanted)
{
    struct world_view view;

    if (wanted->pinned)
        return wanted->layout;
    world_view_get(control, &view);
    struct digest layout = view.known ? view.layout : (struct digest){0};
    world_view_release(&view);
    return layout;
}

/* What was read of a local epoch before a `skip` goes by the layout, which may have changed since. */
static int check_skip(const struct making *m)
{
    const struct plan_request *w = m->wanted;

    if (w->mode != PLAN_LOCAL || w->skip == 0 || w->pinned || w->digested || m->table->owners.nodes == 1)
        return 0;
    str_adds(m->why, "`skip` with `mode=local` needs `layout=`, the `layout` of the summary that the epoch began with: "
                     "from another layout samples would be lost or repeated");
    return -EINVAL;
}

static int making_prepare(struct making *m)
{
    int error = m->wanted->pinned ? 0 : world_view_await(m->control, m->question->asker, m->why);
    struct digest layout = plan_layout(m->control, m->wanted);

    if (!error)
        error = lists_choose(m->control, m->wanted, m->question->asker, &m->charge, &m->list, m->why);
    if (!error)
        error = owners_find(m->control, m->list, &layout, m->question->asker, &m->table, m->why);
    if (!error)
        error = check_skip(m);
    return error ? error : place_ranks(m);
}

/* What it is made of, without who asks for which part of it. */
static struct digest making_key(const struct making *m)
{
    const struct plan_request *w = m->wanted;
    struct {
        struct digest layout, list, payload, nodes;
        uint64_t epoch, seed, skip;
        uint32_t ranks, batch, order, distinct, mode, tail, echo, echo_at, echo_buffer, zero;
    } made_of = {
        .layout = m->table->layout,
        .list = *samples_digest(m->list),
        .payload = hash128(m->question->payload, plan_request_has_payload(w) ? m->question->payload_length : 0, 0),
        .nodes = hash128(m->node_of_rank, m->node_of_rank ? w->ranks * sizeof *m->node_of_rank : 0, 0),
        .epoch = w->epoch,
        .seed = w->seed,
        .skip = w->skip,
        .ranks = w->ranks,
        .batch = w->batch,
        .order = w->order,
        .distinct = w->distinct,
        .mode = w->mode,
        .tail = w->tail,
        .echo = w->echo,
        .echo_at = w->echo_at,
        .echo_buffer = w->echo_buffer,
    };

    return hash128(&made_of, sizeof made_of, 0);
}

static uint64_t file_bytes(void *user, uint32_t sample)
{
    const struct making *m = user;

    return catalog_file(m->control->config.catalog, samples_file(m->list, sample)).size;
}

/* What the order takes: that of the payload has an entry for two bytes at most. */
static uint64_t order_bytes_most(const struct making *m)
{
    const struct plan_request *w = m->wanted;
    uint64_t n = samples_count(m->list), wide = w->order == PLAN_ORDER_TEXT ? 2 : w->order == PLAN_ORDER_U32 ? 4 : 8;

    if (!plan_request_has_payload(w) || (w->distinct && m->question->payload_length / wide >= n))
        return n * sizeof(uint32_t) + n / 8;
    return m->question->payload_length / wide * sizeof(uint32_t) + sizeof(uint32_t);
}

static int make_order(struct making *m, uint32_t **order, uint32_t *count)
{
    static const enum order_form form[] = {
        [PLAN_ORDER_U32] = ORDER_U32, [PLAN_ORDER_U64] = ORDER_U64, [PLAN_ORDER_TEXT] = ORDER_TEXT};
    const struct plan_request *w = m->wanted;
    uint32_t n = samples_count(m->list);

    if (plan_request_has_payload(w)) {
        const struct order_rules rules = {form[w->order], n, w->distinct};
        return order_given(&rules, m->question->payload, m->question->payload_length, &m->stop, order, count, m->why);
    }
    *order = malloc((n + 1ul) * sizeof **order);
    *count = n;
    if (!*order)
        return str_no_memory(m->why);
    return w->order == PLAN_ORDER_NATURAL ? order_natural(*order, n, &m->stop)
                                          : order_seeded(*order, n, w->seed + w->epoch, &m->stop);
}

static int fill_planned(struct making *m, struct plan *plan, struct planned *planned)
{
    planned->shape = plan_shape(plan);
    charge_cut(&planned->charge, plan_length_all(plan) * sizeof *planned->lists);
    planned->lists = malloc((plan_length_all(plan) + 1) * sizeof *planned->lists);
    int error = planned->lists ? plan_run(plan, planned->lists, &m->stop, &planned->summary) : -ENOMEM;
    return error == -ENOMEM ? str_no_memory(m->why) : error;
}

static int make_plan(struct making *m, struct planned *planned)
{
    const struct plan_request *w = m->wanted;
    CLEANUP_FREE uint32_t *order = NULL;
    uint32_t count;
    struct plan *plan;
    int error = charge_add(&m->charge, order_bytes_most(m), m->why);

    if (!error)
        error = make_order(m, &order, &count);
    if (error)
        return error;
    const struct plan_input input = {.order = order,
                                     .count = count,
                                     .ranks = w->ranks,
                                     .batch = w->batch,
                                     .mode = w->mode,
                                     .tail = w->tail,
                                     .skip = w->skip,
                                     .echo_at = w->echo_at,
                                     .echo = {w->echo, w->echo_buffer, w->seed + w->epoch},
                                     .samples = samples_count(m->list),
                                     .owners = m->table->owners,
                                     .node_of_rank = m->node_of_rank,
                                     .bytes = file_bytes,
                                     .user = m,
                                     .bytes_of_all = plan_request_has_payload(w) ? 0 : m->table->bytes};
    planned->charge = charge_like(&m->charge);
    error = charge_add(&m->charge, plan_memory_most(&input), m->why);
    if (!error)
        error = charge_add(&planned->charge, plan_entries_most(&input) * sizeof *planned->lists, m->why);
    if (!error)
        error = plan_create(&input, &m->stop, &plan, m->why);
    if (error)
        return error;
    error = fill_planned(m, plan, planned);
    plan_destroy(plan);
    planned->layout = m->table->layout;
    planned->epoch = w->epoch;
    planned->batch = w->batch;
    planned->mode = w->mode;
    return error;
}

static bool has_digest(const struct planned *planned, const struct digest *digest)
{
    return memcmp(&planned->summary.digest, digest, sizeof *digest) == 0;
}

static bool is_plan_of(const struct planned *planned, const struct plan_request *w)
{
    return planned->epoch == w->epoch && planned->shape.ranks == w->ranks && planned->batch == w->batch &&
           planned->mode == w->mode;
}

/* With `digest` the order need not be given again: the plan may be kept. */
static int find_plan(struct making *m, struct planned **planned)
{
    struct plans *plans = &m->control->plans;

    if (m->wanted->digested && (*planned = plans_find(plans, &m->wanted->digest))) {
        if (is_plan_of(*planned, m->wanted))
            return 0;
        plans_put(plans, *planned);
    }
    struct digest key = making_key(m);
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

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void add_summary(struct json *json, const struct planned *p)
{
    static const struct digest never; /* was there a world */
    const struct plan_summary *s = &p->summary;
    char digest[DIGEST_TEXT], layout[DIGEST_TEXT];
    bool known = memcmp(&p->layout, &never, sizeof never) != 0;

    json_uint(json, "epoch", p->epoch);
    json_uint(json, "ranks", p->shape.ranks);
    json_uint(json, "batch", p->batch);
    json_string(json, "mode", p->mode == PLAN_LOCALITY ? "locality" : p->mode == PLAN_REGULAR ? "regular" : "local");
    json_string(json, "digest", digest_format(&s->digest, digest));
    json_string(json, "layout", known ? digest_format(&p->layout, layout) : NULL);
    json_uint(json, "steps", s->steps);
    json_uint(json, "samples", s->samples);
    json_uint(json, "fresh", s->fresh);
    json_uint(json, "fresh_bytes", s->fresh_bytes);
    json_fixed(json, "duplicates_percent", percent(s->duplicates, s->samples), 3);
    json_uint(json, "refetched", s->refetched);
    json_fixed(json, "local_percent", percent(s->local, s->samples), 3);
    json_uint(json, "moved", s->moved);
    json_uint(json, "moved_bytes", s->moved_bytes);
    json_uint(json, "unowned", s->unowned);
    json_uint(json, "unowned_bytes", s->unowned_bytes);
    json_uint(json, "unread", s->unread);
    json_uint(json, "transfers", s->transfers);
    json_begin_object(json, "imbalance_percent");
    json_fixed(json, "mean", percent(s->moved, s->samples), 3);
    json_fixed(json, "worst", percent(s->worst_moved, s->worst_of), 3);
    json_end_object(json);
}

static uint32_t node_of(const struct making *m, uint32_t rank)
{
    return m->node_of_rank ? m->node_of_rank[rank] : placement_even(m->table->owners.nodes, m->wanted->ranks, rank);
}

/* Of what the ranks on this node read, how much it holds now, whoever owns it by the plan's layout. */
static void add_held(struct json *json, const struct making *m, const struct planned *p)
{
    struct store *store = m->control->config.store;
    uint64_t samples = 0, held = 0;
    enum tier_name tier;

    for (uint32_t rank = 0; rank < p->shape.ranks && store; rank++) {
        if (node_of(m, rank) != m->table->me)
            continue;
        const uint32_t *list = p->lists + plan_shape_place(&p->shape, rank);
        uint64_t length = plan_shape_length(&p->shape, rank);
        for (uint64_t i = 0; i < length; i++)
            held += store_where(store, samples_file(m->list, list[i]), &tier) == 0;
        samples += length;
    }
    if (samples)
        json_fixed(json, "held_percent", percent(held, samples), 3);
    else
        json_string(json, "held_percent", NULL);
}

static int reply_with(const struct making *m, const struct planned *planned, struct str *reply)
{
    struct json json = {.out = reply};
    const struct plan_request *w = m->wanted;

    if (w->reply != REPLY_SUMMARY) {
        uint64_t most = format_most(w->reply, &planned->shape, samples_count(m->list), w->rank);
        int error = charge_reach(m->question->asker->charge, most, m->why);
        if (!error && str_reserve(reply, most))
            format_lists(reply, w->reply, &planned->shape, planned->lists, w->rank);
        return error;
    }
    json_begin_object(&json, NULL);
    add_summary(&json, planned);
    add_held(&json, m, planned);
    json_end_object(&json);
    str_adds(reply, "\n");
    return 0;
}

/* Does the rank that asks run here? A plan found by its digest may be of another world, where nobody knows that. */
static void count_misplaced(const struct making *m)
{
    const struct plan_request *w = m->wanted;
    const struct owner_table *t = m->table;

    if (w->rank == PLAN_ALL_RANKS || w->reply == REPLY_SUMMARY)
        return;
    uint32_t node = node_of(m, w->rank);
    if (node == t->me || node == UINT32_MAX)
        return;
    pthread_mutex_lock(&m->control->plans.lock);
    m->control->plans.misplaced++;
    pthread_mutex_unlock(&m->control->plans.lock);
}

/* For the mount's owner: what is fed for one is not there for another. What the feeder asks for is a guess. */
static void wish_feed(const struct making *m, const struct planned *planned)
{
    const struct feed *feed = m->control->config.feed;
    const struct feed_wish wish = {
        .wanted = m->wanted,
        .layout = &planned->layout,
        .digest = &planned->summary.digest,
        .node_of_rank = m->node_of_rank,
        .nodes = m->table->owners.nodes,
        .me = m->table->me,
        .guess = feed && m->question->asker->pid == (pid_t)atomic_load(&feed->feeder) && m->question->asker->pid > 0,
    };

    if (m->wanted->feed && !m->charge.other)
        feed_table_ask(m->control, &wish);
}

int plan_answer(struct control *control, const struct plan_question *question, struct plan_origin *origin,
                struct str *reply, struct str *why)
{
    const struct asker *asker = question->asker;
    struct making m = {.control = control,
                       .question = question,
                       .wanted = &question->wanted,
                       .why = why,
                       .charge = charge_like(asker->charge),
                       .stop = {asker->gave_up, asker->user}};
    struct planned *planned;
    int error = making_prepare(&m);

    if (!error)
        error = find_plan(&m, &planned);
    if (!error) {
        if (m.wanted->digested && !has_digest(planned, &m.wanted->digest)) {
            str_adds(why, "`digest`: the plan is another, and that one is not kept");
            error = -ESTALE;
        } else {
            error = reply_with(&m, planned, reply);
        }
        *origin = (struct plan_origin){planned->layout, planned->key};
        plans_put(&control->plans, planned);
        if (!error) {
            count_misplaced(&m);
            wish_feed(&m, planned);
        }
        str_add(reply, "", 0);
    }
    making_fini(&m);
    return error;
}

static int plan_verb_run(struct control *control, const struct request *request, const struct asker *asker,
                         struct str *reply, struct str *why)
{
    struct plan_question question = {
        .payload = request->payload, .payload_length = request->payload_length, .asker = asker};
    struct plan_origin origin;
    int error = plan_request_parse(request->value, &question.wanted, why);

    if (error)
        return error;
    if (!plan_request_has_payload(&question.wanted) &&
        !request_only_line_ends(request->payload, request->payload_length)) {
        str_adds(why, "without `order=u32`, `u64` or `text` nothing may follow the first line of `plan`");
        return -EINVAL;
    }
    return plan_answer(control, &question, &origin, reply, why);
}

void verb_plan_add_status(struct json *json, struct control *control)
{
    struct plans *plans = &control->plans;

    pthread_mutex_lock(&plans->lock);
    json_begin_object(json, "plans");
    json_uint(json, "made", plans->made);
    json_uint(json, "misplaced", plans->misplaced);
    json_begin_array(json, "last");
    for (int i = 0; i < PLANS_KEPT; i++)
        if (plans->plan[i] && plans->plan[i]->ready) {
            json_begin_object(json, NULL);
            add_summary(json, plans->plan[i]);
            json_end_object(json);
        }
    json_end_array(json);
    json_end_object(json);
    pthread_mutex_unlock(&plans->lock);
}

const struct verb verb_plan = {
    .name = "plan",
    .about = "payload: the order, for order=u32, u64 or text; reply: lists of sample numbers",
    .keys = plan_keys,
    .payload_most = PAYLOAD_MOST,
    .run = plan_verb_run,
};
