/* The keys of a `plan` request, and their values. */
#include "fs/plan/plan-request.h"

#include "fs/base/size.h"
#include "fs/plan/swaps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY(key) [PLAN_KEY_##key]
const struct key plan_keys[PLAN_KEYS + 1] = {
    KEY(EPOCH) = {.name = "epoch", .value = "E", .required = true, .help = "the number of the epoch"},
    KEY(RANKS) = {.name = "ranks", .value = "R", .required = true, .help = "ranks of the job"},
    KEY(BATCH) = {.name = "batch", .value = "B", .required = true, .help = "samples of one rank in a step"},
    KEY(RANK) = {.name = "rank", .value = "r", .help = "only this rank's list"},
    KEY(REPLY) = {.name = "reply",
                  .choices = "text|u32|u64|summary|bytes|spans|paths",
                  .help = "format of the reply; summary: JSON about the plan; bytes: the samples themselves"},
    KEY(SEED) = {.name = "seed", .value = "S", .help = "the order is PyTorch's permutation of seed S + E (0)"},
    KEY(ORDER) = {.name = "order",
                  .choices = "u32|u64|text|natural",
                  .help = "a given order, in this format; natural: that of the list"},
    KEY(SAMPLES) = {.name = "samples", .value = "all|imagefolder|NAME", .help = "sample list"},
    KEY(UNDER) = {.name = "under", .value = "DIR", .help = "only files of the list below this directory"},
    KEY(MATCH) = {.name = "match", .value = "GLOB", .help = "only files of the list whose path matches"},
    KEY(COUNT) = {.name = "count", .value = "N", .help = "fail unless the list has exactly N samples"},
    KEY(WITHOUT) = {.name = "without", .value = "NAME", .help = "leave out the samples of this list"},
    KEY(DISTINCT) = {.name = "distinct", .choices = "yes|no", .help = "no: the order may repeat or omit samples"},
    KEY(MODE) = {.name = "mode", .choices = "locality|regular|local", .help = "how batches are dealt to the ranks"},
    KEY(TAIL) = {.name = "tail",
                 .choices = "pad|drop|short",
                 .help = "what to do if the samples cannot be divided evenly by the ranks"},
    KEY(SKIP) = {.name = "skip", .value = "SAMPLES", .help = "resume after SAMPLES samples of the order"},
    KEY(ECHO) = {.name = "echo", .value = "F", .help = "use each sample, or batch, F times"},
    KEY(ECHO_AT) = {.name = "echo_at", .choices = "example|batch", .help = "what is repeated"},
    KEY(ECHO_BUFFER) = {.name = "echo_buffer",
                        .value = "K",
                        .help = "size in samples of the buffer that shuffles echoes (100000)"},
    KEY(COST) = {.name = "cost",
                 .value = "none|bytes|NAME",
                 .help = "swap samples until the ranks of a step cost the same"},
    KEY(BALANCE) = {.name = "balance", .value = "F", .help = "no rank costs more than F times the mean (1.02)"},
    KEY(WINDOW) = {.name = "window", .value = "A", .help = "balance the costs of A steps together (1)"},
    KEY(STEP) = {.name = "step", .value = "N", .help = "only the global batch of this step, from 0"},
    KEY(STEPS) = {.name = "steps", .value = "N-M", .help = "only the global batches of these steps"},
    KEY(WORKERS) = {.name = "workers", .value = "W", .help = "number of loader workers that share the rank's list"},
    KEY(WORKER) = {.name = "worker", .value = "w", .help = "only the batches of this worker: w, w + W, ..."},
    KEY(KEYS) = {.name = "keys",
                 .choices = "original|unique",
                 .help = "unique: put the position before each key of a tar stream"},
    KEY(NODES) = {.name = "nodes", .value = "N,...", .help = "the node of each rank, by number or host name"},
    KEY(LAYOUT) = {.name = "layout", .value = "DIGEST", .help = "plan from this layout, or fail"},
    KEY(DIGEST) = {.name = "digest", .value = "DIGEST", .help = "fail unless the plan has this digest"},
    KEY(CATALOG) = {.name = "catalog", .value = "DIGEST", .help = "fail unless the dataset has this digest"},
    KEY(RESUME) = {.name = "resume", .value = "ORDER", .help = "fail unless the order is that of a checkpoint"},
    KEY(FEED) = {.name = "feed", .choices = "no|yes", .help = "read ahead of the ranks on this node"},
    [PLAN_KEYS] = {0},
};

enum { BATCH_MOST = 1 << 30 };

struct parsing {
    const struct key_value *value;
    struct str *why;
    int error; /* the first error */
};

static void refuse_value(struct parsing *p, int error, enum plan_key key, const char *what)
{
    if (p->error)
        return;
    p->error = error;
    str_addf(p->why, "`%s=", plan_keys[key].name);
    str_add_printable(p->why, p->value[key].text, p->value[key].length);
    str_addf(p->why, "`: %s", what);
}

static uint64_t take_number(struct parsing *p, enum plan_key key, uint64_t min, uint64_t max, uint64_t otherwise)
{
    char limits[96];
    uint64_t number = otherwise;
    int error = p->value[key].text ? number_parse(p->value[key].text, min, max, &number) : 0;
    if (!error)
        return number;
    snprintf(limits, sizeof limits, "must be a whole number of %" PRIu64 " to %" PRIu64, min, max);
    refuse_value(p, error, key, limits);
    return otherwise;
}

/* `what` says what is allowed, for the error message. */
static uint32_t take_millionths(struct parsing *p, enum plan_key key, uint32_t min, uint32_t max, const char *what)
{
    const char *text = p->value[key].text;
    uint64_t value = min;
    int error = text ? millionths_parse(text, min, max, &value) : 0;
    if (error)
        refuse_value(p, error, key,
                     error == -ERANGE ? what : "must be a number such as 1 or 0.5, of at most six decimals");
    return (uint32_t)value;
}

static void take_order(struct parsing *p, struct plan_request *r)
{
    const struct key_value *order = &p->value[PLAN_KEY_ORDER];
    r->order = order->text ? PLAN_ORDER_U32 + order->choice : PLAN_ORDER_SEED;
    r->seed = take_number(p, PLAN_KEY_SEED, 0, UINT64_MAX, 0);
    if (order->text && p->value[PLAN_KEY_SEED].text)
        refuse_value(p, -EINVAL, PLAN_KEY_SEED, "cannot be combined with `order`, which gives the order");
    r->distinct = p->value[PLAN_KEY_DISTINCT].choice == 0;
}

static void take_ranks(struct parsing *p, struct plan_request *r)
{
    r->ranks = (uint32_t)take_number(p, PLAN_KEY_RANKS, 1, PLAN_RANKS_MOST, 1);
    r->batch = (uint32_t)take_number(p, PLAN_KEY_BATCH, 1, BATCH_MOST, 1);
    r->rank = p->error ? PLAN_ALL_RANKS : (uint32_t)take_number(p, PLAN_KEY_RANK, 0, r->ranks - 1, PLAN_ALL_RANKS);
    r->nodes = p->value[PLAN_KEY_NODES].text;
}

/* A part belongs to one rank. */
static void take_part(struct parsing *p, struct plan_request *r)
{
    const struct key_value *workers = &p->value[PLAN_KEY_WORKERS], *worker = &p->value[PLAN_KEY_WORKER];
    r->workers = (uint32_t)take_number(p, PLAN_KEY_WORKERS, 1, PLAN_WORKERS_MOST, 1);
    r->worker = p->error ? 0 : (uint32_t)take_number(p, PLAN_KEY_WORKER, 0, r->workers - 1, 0);
    if (workers->text && !worker->text)
        refuse_value(p, -EINVAL, PLAN_KEY_WORKERS, "needs `worker=`, a number below it");
    else if (worker->text && !workers->text)
        refuse_value(p, -EINVAL, PLAN_KEY_WORKER, "needs `workers=`");
    else if (workers->text && (r->rank == PLAN_ALL_RANKS || r->reply == REPLY_SUMMARY || r->reply == REPLY_PATHS))
        refuse_value(p, -EINVAL, PLAN_KEY_WORKERS,
                     "needs `rank=`, and cannot be combined with `reply=summary` or `paths`");
    else if ((r->reply == REPLY_BYTES || r->reply == REPLY_SPANS) && r->rank == PLAN_ALL_RANKS)
        refuse_value(p, -EINVAL, PLAN_KEY_REPLY, "needs `rank=`");
}

static void take_samples(struct parsing *p, struct plan_request *r)
{
    r->samples = p->value[PLAN_KEY_SAMPLES].text ? p->value[PLAN_KEY_SAMPLES].text : "all";
    r->under = p->value[PLAN_KEY_UNDER].text;
    r->match = p->value[PLAN_KEY_MATCH].text;
    r->without = p->value[PLAN_KEY_WITHOUT].text;
    r->count = take_number(p, PLAN_KEY_COUNT, 0, UINT32_MAX, UINT64_MAX);
}

static void take_cost(struct parsing *p, struct plan_request *r)
{
    const char *cost = p->value[PLAN_KEY_COST].text;
    r->cost = cost && strcmp(cost, "none") != 0 ? cost : NULL;
    r->balance = BALANCE_DEFAULT;
    if (p->value[PLAN_KEY_BALANCE].text)
        r->balance = take_millionths(p, PLAN_KEY_BALANCE, BALANCE_ONE, BALANCE_MOST, "must be 1 to 1000");
    r->window = (uint32_t)take_number(p, PLAN_KEY_WINDOW, 1, WINDOW_MOST, 1);
    if (!r->cost && p->value[PLAN_KEY_BALANCE].text)
        refuse_value(p, -EINVAL, PLAN_KEY_BALANCE, "needs `cost`");
    if (!r->cost && p->value[PLAN_KEY_WINDOW].text)
        refuse_value(p, -EINVAL, PLAN_KEY_WINDOW, "needs `cost`");
}

/* Parses N-M. */
static bool parse_steps(const char *text, uint64_t *from, uint64_t *to)
{
    const char *end = text + strlen(text);
    return number_take(&text, end, UINT32_MAX, from) && *text++ == '-' && number_take(&text, end, UINT32_MAX, to) &&
           text == end && *from <= *to;
}

static void take_steps(struct parsing *p, struct plan_request *r)
{
    const char *steps = p->value[PLAN_KEY_STEPS].text;
    r->chosen = steps || p->value[PLAN_KEY_STEP].text;
    r->from = r->to = take_number(p, PLAN_KEY_STEP, 0, UINT32_MAX, 0);
    if (steps && p->value[PLAN_KEY_STEP].text)
        refuse_value(p, -EINVAL, PLAN_KEY_STEPS, "only one of `step` and `steps` can be given");
    else if (steps && !parse_steps(steps, &r->from, &r->to))
        refuse_value(p, -EINVAL, PLAN_KEY_STEPS, "must be two whole numbers such as 10-19");
    if (r->chosen && r->feed)
        refuse_value(p, -EINVAL, PLAN_KEY_FEED, "`feed=yes` needs the whole epoch, not some steps");
    if (r->reply == REPLY_BYTES && r->feed)
        refuse_value(p, -EINVAL, PLAN_KEY_FEED, "the server reads streams ahead by itself");
}

/* True: the key was given. */
static bool take_digest(struct parsing *p, enum plan_key key, struct digest *digest)
{
    const char *text = p->value[key].text;
    if (text && digest_parse(text, digest))
        refuse_value(p, -EINVAL, key, "must be a digest of 32 hexadecimal digits, as `status` shows it");
    return text != NULL;
}

int plan_request_parse(const struct key_value value[PLAN_KEYS], struct plan_request *request, struct str *why)
{
    struct parsing p = {.value = value, .why = why};
    struct plan_request r = {
        .reply = value[PLAN_KEY_REPLY].choice,
        .mode = value[PLAN_KEY_MODE].choice,
        .tail = value[PLAN_KEY_TAIL].choice,
        .echo_at = value[PLAN_KEY_ECHO_AT].choice,
        .feed = value[PLAN_KEY_FEED].choice == 1,
        .unique_keys = value[PLAN_KEY_KEYS].choice == 1,
    };
    r.epoch = take_number(&p, PLAN_KEY_EPOCH, 0, UINT64_MAX, 0);
    take_ranks(&p, &r);
    take_part(&p, &r);
    take_order(&p, &r);
    take_samples(&p, &r);
    r.skip = take_number(&p, PLAN_KEY_SKIP, 0, UINT64_MAX, 0);
    r.echo = take_millionths(&p, PLAN_KEY_ECHO, ECHO_ONE, ECHO_MOST, "must be 1 to 1000");
    r.echo_buffer = (uint32_t)take_number(&p, PLAN_KEY_ECHO_BUFFER, 0, UINT32_MAX, ECHO_BUFFER);
    take_cost(&p, &r);
    take_steps(&p, &r);
    r.pinned = take_digest(&p, PLAN_KEY_LAYOUT, &r.layout);
    r.digested = take_digest(&p, PLAN_KEY_DIGEST, &r.digest);
    r.cataloged = take_digest(&p, PLAN_KEY_CATALOG, &r.catalog);
    r.resumes = value[PLAN_KEY_RESUME].text != NULL;
    if (r.resumes && order_digest_parse(value[PLAN_KEY_RESUME].text, &r.resume))
        refuse_value(&p, -EINVAL, PLAN_KEY_RESUME, "must be `order` of a summary");
    if (!p.error)
        *request = r;
    return p.error;
}

uint64_t plan_request_sequence(const struct plan_request *r, const void *payload, size_t n)
{
    bool echoed = r->echo != ECHO_ONE, batches = echoed && r->echo_at == ECHO_AT_BATCH,
         given = plan_request_has_payload(r);
    const uint64_t made_of[] = {
        r->epoch,
        given ? 0 : r->seed,
        r->order == PLAN_ORDER_NATURAL,
        given ? hash64(payload, n, r->order) : 0,
        r->echo,
        echoed ? r->echo_at : 0,
        echoed ? r->echo_buffer : 0,
        batches ? (uint64_t)r->ranks * r->batch : 0, /* of these the batches that are used again consist */
    };
    return hash64(made_of, sizeof made_of, 0);
}

/* --- nodes= --- */

/* The key `nodes`, read rank by rank. */
struct nodes_reading {
    const char *const *host; /* by node */
    uint32_t nodes, rank;
    uint32_t *first, *count; /* by node: the first one that it was named with, and how many those are */
    struct str *why;
};

static int refuse_node(const struct nodes_reading *r, int error, const char *word, size_t n, const char *what)
{
    str_addf(r->why, "`nodes`: rank %" PRIu32 " is on `", r->rank);
    str_add_printable(r->why, word, n);
    return str_fail(r->why, error, "`, %s", what);
}

/* A node's number, or the name of a host with one node. */
static int find_node(const struct nodes_reading *r, const char *word, size_t n, uint32_t *node)
{
    char text[256];
    uint64_t number;
    uint32_t found = 0;
    if (n == 0 || n >= sizeof text)
        return refuse_node(r, -EINVAL, word, n < sizeof text ? n : sizeof text, "which is not a node");
    memcpy(text, word, n);
    text[n] = '\0';
    if (text[strspn(text, "0123456789")] == '\0') {
        if (number_parse(text, 0, r->nodes - 1, &number))
            return refuse_node(r, -ENOENT, word, n, "a number that is not a node of the layout");
        *node = (uint32_t)number;
        return 0;
    }
    for (uint32_t v = 0; v < r->nodes; v++)
        if (strcmp(r->host[v], text) == 0) {
            *node = v;
            found++;
        }
    if (found == 1)
        return 0;
    return refuse_node(r, found ? -EINVAL : -ENOENT, word, n,
                       found ? "a host with several nodes: use their numbers" : "a host without a node of the layout");
}

#define NOT_SET UINT32_MAX

/* The nodes of a rank, such as 0+3: all of them are new, or another rank has the same. */
static int join_nodes(struct nodes_reading *r, const char *at, size_t n, uint32_t *first)
{
    const char *end = at + n;
    uint32_t count = 0, node;
    bool fresh = false;
    for (; at <= end; count++) {
        size_t length = strcspn(at, "+,");
        int error = find_node(r, at, length, &node);
        if (error)
            return error;
        if (count == 0) {
            fresh = r->first[node] == NOT_SET;
            *first = fresh ? node : r->first[node];
        }
        if (r->first[node] != (fresh ? NOT_SET : *first))
            return refuse_node(r, -EINVAL, at, length, "which is named twice, with different other nodes");
        r->first[node] = *first;
        at += length + 1;
    }
    if (!fresh && r->count[*first] != count)
        return refuse_node(r, -EINVAL, end - n, n, "but another rank has only some of these nodes, or more");
    r->count[*first] = count;
    return 0;
}

static int parse_nodes(struct nodes_reading *r, const struct plan_request *request, uint32_t *first_of_rank)
{
    const char *at = request->nodes;
    for (r->rank = 0; r->rank < request->ranks; r->rank++) {
        size_t n = strcspn(at, ",");
        int error = join_nodes(r, at, n, &first_of_rank[r->rank]);
        if (error)
            return error;
        at += n;
        if ((*at == ',') != (r->rank + 1 < request->ranks))
            return str_fail(r->why, -EINVAL, "`nodes` has %s entries than the %" PRIu32 " ranks",
                            *at ? "more" : "fewer", request->ranks);
        at += *at == ',';
    }
    return 0;
}

/* Units are numbered in the order of their lowest nodes. */
static uint32_t number_units(const struct nodes_reading *r, uint32_t *unit_of_node)
{
    uint32_t units = 0, *number = r->count;
    memset(number, 0xff, r->nodes * sizeof *number);
    for (uint32_t v = 0; v < r->nodes; v++) {
        uint32_t first = r->first[v] == NOT_SET ? v : r->first[v];
        if (number[first] == NOT_SET)
            number[first] = units++;
        unit_of_node[v] = number[first];
    }
    return units;
}

int plan_request_nodes(const struct plan_request *request, const char *const *host, uint32_t nodes,
                       struct plan_places *places, struct str *why)
{
    struct nodes_reading r = {.host = host, .nodes = nodes, .why = why};
    r.first = malloc(nodes * sizeof *r.first);
    r.count = calloc(nodes, sizeof *r.count);
    int error = r.first && r.count ? 0 : str_no_memory(why);
    if (!error) {
        memset(r.first, 0xff, nodes * sizeof *r.first);
        error = parse_nodes(&r, request, places->unit_of_rank);
    }
    if (!error) {
        places->units = number_units(&r, places->unit_of_node);
        for (uint32_t rank = 0; rank < request->ranks; rank++)
            places->unit_of_rank[rank] = places->unit_of_node[places->unit_of_rank[rank]];
    }
    free(r.first);
    free(r.count);
    return error;
}
