/* `plan`: deal an epoch. From the request's line and payload to sample list, order and owners; then either a plan that
 * was made already, or a new one; then its lists, as they were asked for. */
#include "fs/mount/control/plan.h"

#include "fs/base/cleanup.h"
#include "fs/base/json.h"
#include "fs/mount/control/owners.h"
#include "fs/plan/format.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* All that a plan is made of. */
struct making {
    struct control *control;
    const struct request *request;
    const struct asker *asker;
    struct plan_request wanted;
    struct plan_stop stop;
    struct samples *list;
    struct owner_table *table;
    uint32_t *node_of_rank; /* NULL: evenly */
    struct str *why;
};

static void making_fini(struct making *m)
{
    if (m->list)
        samples_put(m->list);
    owners_put(m->table);
    free(m->node_of_rank);
}

static bool never(void *user)
{
    (void)user;
    return false;
}

static int parse(struct making *m)
{
    const char *value[PLAN_KEYS];

    for (int i = 0; i < PLAN_KEYS; i++)
        value[i] = m->request->value[i].text;
    int error = plan_request_parse(value, &m->wanted, m->why);
    if (error || plan_request_has_payload(&m->wanted) || m->request->payload_length == 0)
        return error;
    for (size_t i = 0; i < m->request->payload_length; i++)
        if (m->request->payload[i] != '\n' && m->request->payload[i] != '\r') {
            str_adds(m->why, "without `order=u32`, `u64` or `text` nothing may follow the first line of `plan`");
            return -EINVAL;
        }
    return 0;
}

static int find_list(struct making *m)
{
    const struct plan_request *w = &m->wanted;
    struct samples *base = samples_table_find(m->control->samples, w->samples);
    int error = 0;

    if (!base) {
        str_adds(m->why, "there is no sample list `");
        str_add_printable(m->why, w->samples, strlen(w->samples));
        str_adds(m->why, "`; samples.d has those that there are");
        return -ENOENT;
    }
    if (w->under || w->match) {
        error = samples_select(base, w->under, w->match, &m->list, m->why);
        samples_put(base);
    } else {
        m->list = base;
    }
    if (!error && w->count != UINT64_MAX && w->count != samples_count(m->list)) {
        str_addf(m->why, "`count=%" PRIu64 "`: the list has %" PRIu32 " samples", w->count, samples_count(m->list));
        error = -EINVAL;
    }
    return error;
}

static int place_ranks(struct making *m)
{
    const struct owner_table *t = m->table;
    CLEANUP_FREE const char **host = NULL;

    if (!m->wanted.nodes)
        return 0;
    host = calloc(t->owners.nodes, sizeof *host);
    m->node_of_rank = calloc(m->wanted.ranks, sizeof *m->node_of_rank);
    if (!host || !m->node_of_rank) {
        str_adds(m->why, "out of memory");
        return -ENOMEM;
    }
    for (uint32_t v = 0; v < t->owners.nodes; v++)
        host[v] = t->host[v];
    return plan_request_nodes(&m->wanted, host, t->owners.nodes, m->node_of_rank, m->why);
}

static int prepare(struct making *m)
{
    int error = parse(m);

    if (!error)
        error = find_list(m);
    if (!error)
        error = owners_find(m->control, m->list, m->wanted.pinned ? &m->wanted.directory : NULL, m->asker, &m->table, m->why);
    return error ? error : place_ranks(m);
}

/* What it is made of, without who asks for which part of it. */
static struct digest key_of(const struct making *m)
{
    const struct plan_request *w = &m->wanted;
    struct {
        struct digest directory, list, payload, nodes;
        uint64_t seed, skip;
        uint32_t ranks, batch, order, distinct, mode, tail, echo, echo_at, echo_buffer, zero;
    } made_of = {
        .directory = m->table->directory,
        .list = *samples_digest(m->list),
        .payload = hash128(m->request->payload, plan_request_has_payload(w) ? m->request->payload_length : 0, 0),
        .nodes = hash128(m->node_of_rank, m->node_of_rank ? w->ranks * sizeof *m->node_of_rank : 0, 0),
        .seed = w->seed + w->epoch, .skip = w->skip, .ranks = w->ranks, .batch = w->batch, .order = w->order,
        .distinct = w->distinct, .mode = w->mode, .tail = w->tail, .echo = w->echo, .echo_at = w->echo_at,
        .echo_buffer = w->echo_buffer,
    };

    return hash128(&made_of, sizeof made_of, 0);
}

static uint64_t file_bytes(void *user, uint32_t sample)
{
    const struct making *m = user;

    return catalog_file(m->control->config.catalog, samples_file(m->list, sample)).size;
}

static int make_order(struct making *m, uint32_t **order, uint32_t *count)
{
    static const enum order_form form[] = {
        [PLAN_ORDER_U32] = ORDER_U32, [PLAN_ORDER_U64] = ORDER_U64, [PLAN_ORDER_TEXT] = ORDER_TEXT};
    const struct plan_request *w = &m->wanted;
    uint32_t n = samples_count(m->list);

    if (plan_request_has_payload(w)) {
        const struct order_rules rules = {form[w->order], n, w->distinct};
        return order_given(&rules, m->request->payload, m->request->payload_length, &m->stop, order, count, m->why);
    }
    *order = malloc((n + 1ul) * sizeof **order);
    *count = n;
    if (!*order) {
        str_adds(m->why, "out of memory");
        return -ENOMEM;
    }
    return w->order == PLAN_ORDER_NATURAL ? order_natural(*order, n, &m->stop)
                                          : order_seeded(*order, n, w->seed + w->epoch, &m->stop);
}

static int run_plan(struct making *m, struct plan *plan, struct planned *planned)
{
    planned->shape = plan_shape(plan);
    planned->lists = malloc((plan_length_all(plan) + 1) * sizeof *planned->lists);
    int error = planned->lists ? plan_run(plan, PLAN_ALL_RANKS, planned->lists, &m->stop, &planned->summary) : -ENOMEM;
    if (error == -ENOMEM)
        str_adds(m->why, "out of memory");
    return error;
}

static int make(struct making *m, struct planned *planned)
{
    const struct plan_request *w = &m->wanted;
    CLEANUP_FREE uint32_t *order = NULL;
    uint32_t count;
    struct plan *plan;
    int error = make_order(m, &order, &count);

    if (error)
        return error;
    const struct plan_input input = {
        .order = order, .count = count, .ranks = w->ranks, .batch = w->batch, .mode = w->mode, .tail = w->tail,
        .skip = w->skip, .echo_at = w->echo_at, .echo = w->echo, .echo_buffer = w->echo_buffer,
        .seed = w->seed + w->epoch, .owners = m->table->owners, .node_of_rank = m->node_of_rank, .bytes = file_bytes,
        .user = m};
    error = plan_create(&input, &m->stop, &plan, m->why);
    if (error)
        return error;
    error = run_plan(m, plan, planned);
    plan_destroy(plan);
    planned->directory = m->table->directory;
    planned->epoch = w->epoch;
    planned->batch = w->batch;
    planned->mode = w->mode;
    return error;
}

static int find_plan(struct making *m, struct planned **planned)
{
    struct plans *plans = &m->control->plans;
    struct digest key = key_of(m);
    int turn = plans_get(plans, &key, m->asker, planned);

    if (turn <= 0)
        return turn;
    int error = make(m, *planned);
    if (error)
        plans_failed(plans, *planned);
    else
        plans_made(plans, *planned);
    return error;
}

/* --- replies --- */

static bool known(const struct digest *directory)
{
    static const struct digest none;

    return memcmp(directory, &none, sizeof none) != 0;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void add_summary(struct json *json, const struct planned *p)
{
    const struct plan_summary *s = &p->summary;
    char digest[DIGEST_TEXT], directory[DIGEST_TEXT];

    json_uint(json, "epoch", p->epoch);
    json_uint(json, "ranks", p->shape.ranks);
    json_uint(json, "batch", p->batch);
    json_string(json, "mode", p->mode == PLAN_LOCALITY ? "locality" : p->mode == PLAN_REGULAR ? "regular" : "local");
    json_string(json, "digest", digest_format(&s->digest, digest));
    json_string(json, "directory", known(&p->directory) ? digest_format(&p->directory, directory) : NULL);
    json_uint(json, "steps", s->steps);
    json_uint(json, "samples", s->samples);
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

static void reply_with(const struct making *m, const struct planned *planned, struct str *reply)
{
    struct json json = {.out = reply};

    if (m->wanted.reply != REPLY_SUMMARY) {
        format_lists(reply, m->wanted.reply, &planned->shape, planned->lists, m->wanted.rank);
        return;
    }
    json_begin_object(&json, NULL);
    add_summary(&json, planned);
    json_end_object(&json);
    str_adds(reply, "\n");
}

/* Does the rank that asks run here? */
static void count_misplaced(const struct making *m)
{
    const struct plan_request *w = &m->wanted;
    const struct owner_table *t = m->table;

    if (w->rank == PLAN_ALL_RANKS || w->reply == REPLY_SUMMARY)
        return;
    uint32_t node = m->node_of_rank ? m->node_of_rank[w->rank] : w->rank / (w->ranks / t->owners.nodes);
    if (node == t->me)
        return;
    pthread_mutex_lock(&m->control->plans.lock);
    m->control->plans.misplaced++;
    pthread_mutex_unlock(&m->control->plans.lock);
}

int plan_answer(struct control *control, const struct request *request, const struct asker *asker,
                struct plan_origin *origin, struct str *reply, struct str *why)
{
    struct making m = {.control = control, .request = request, .asker = asker, .why = why,
                       .stop = {asker->gave_up ? asker->gave_up : never, asker->user}};
    struct planned *planned;
    int error = prepare(&m);

    if (!error)
        error = find_plan(&m, &planned);
    if (!error) {
        reply_with(&m, planned, reply);
        *origin = (struct plan_origin){planned->directory, planned->key};
        plans_put(&control->plans, planned);
        count_misplaced(&m);
        str_add(reply, "", 0);
    }
    making_fini(&m);
    return error;
}

static int run(struct control *control, const struct request *request, const struct asker *asker, struct str *reply,
               struct str *why)
{
    struct plan_origin origin;

    return plan_answer(control, request, asker, &origin, reply, why);
}

void control_add_plans(struct json *json, struct control *control)
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

#define KEY(key) [PLAN_KEY_##key]
static const struct request_key keys[] = {
    KEY(EPOCH) = {.name = "epoch", .required = true},
    KEY(RANKS) = {.name = "ranks", .required = true},
    KEY(BATCH) = {.name = "batch", .required = true},
    KEY(RANK) = {.name = "rank"},
    KEY(REPLY) = {.name = "reply", .choices = "text|u32|u64|summary"},
    KEY(SEED) = {.name = "seed"},
    KEY(ORDER) = {.name = "order", .choices = "u32|u64|text|natural"},
    KEY(SAMPLES) = {.name = "samples"},
    KEY(UNDER) = {.name = "under"},
    KEY(MATCH) = {.name = "match"},
    KEY(COUNT) = {.name = "count"},
    KEY(DISTINCT) = {.name = "distinct", .choices = "yes|no"},
    KEY(MODE) = {.name = "mode", .choices = "locality|regular|local"},
    KEY(TAIL) = {.name = "tail", .choices = "pad|drop|short"},
    KEY(SKIP) = {.name = "skip"},
    KEY(ECHO) = {.name = "echo"},
    KEY(ECHO_AT) = {.name = "echo_at", .choices = "example|batch"},
    KEY(ECHO_BUFFER) = {.name = "echo_buffer"},
    KEY(NODES) = {.name = "nodes"},
    KEY(DIRECTORY) = {.name = "directory"},
    [PLAN_KEYS] = {0},
};

const struct verb verb_plan = {
    .name = "plan",
    .usage = "plan epoch=E ranks=R batch=B [rank=r] [reply=text|u32|u64|summary] [seed=0|order=u32|u64|text|natural]\n"
             "       [samples=all|imagefolder|NAME] [under=DIR] [match=GLOB] [count=N] [distinct=yes|no]\n"
             "       [mode=locality|regular|local] [tail=pad|drop|short] [skip=SAMPLES]\n"
             "       [echo=F] [echo_at=example|batch] [echo_buffer=K] [nodes=n0,n1,...] [directory=DIGEST]\n"
             "       payload: the order, for order=u32, u64 or text; reply: lists of sample numbers",
    .keys = keys,
    .payload_most = REQUEST_MOST,
    .run = run,
};
