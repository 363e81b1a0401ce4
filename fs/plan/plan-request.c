/* The keys of a `plan` request, and their values. */
#include "fs/plan/plan-request.h"

#include "fs/base/size.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KEY(key) [PLAN_KEY_##key]
const struct key plan_keys[PLAN_KEYS + 1] = {
    KEY(EPOCH) = {.name = "epoch", .value = "E", .required = true, .help = "the number of the epoch"},
    KEY(RANKS) = {.name = "ranks", .value = "R", .required = true, .help = "ranks of the job"},
    KEY(BATCH) = {.name = "batch", .value = "B", .required = true, .help = "samples of one rank in a step"},
    KEY(RANK) = {.name = "rank", .value = "r", .help = "only this rank's list"},
    KEY(REPLY) = {.name = "reply",
                  .choices = "text|u32|u64|summary",
                  .help = "the form of the lists; summary: numbers about them"},
    KEY(SEED) = {.name = "seed", .value = "S", .help = "the order is PyTorch's permutation of seed S + E (0)"},
    KEY(ORDER) = {.name = "order",
                  .choices = "u32|u64|text|natural",
                  .help = "another order: it follows, or is that of the list"},
    KEY(SAMPLES) = {.name = "samples", .value = "all|imagefolder|NAME", .help = "the sample list that numbers are of"},
    KEY(UNDER) = {.name = "under", .value = "DIR", .help = "of it the files below a directory"},
    KEY(MATCH) = {.name = "match", .value = "GLOB", .help = "of it the files whose path matches"},
    KEY(COUNT) = {.name = "count", .value = "N", .help = "refuse unless the list has as many samples"},
    KEY(DISTINCT) = {.name = "distinct",
                     .choices = "yes|no",
                     .help = "no: the order may repeat samples, or leave some out"},
    KEY(MODE) = {.name = "mode", .choices = "locality|regular|local", .help = "how batches are dealt to the ranks"},
    KEY(TAIL) = {.name = "tail", .choices = "pad|drop|short", .help = "where ranks do not divide the samples"},
    KEY(SKIP) = {.name = "skip", .value = "SAMPLES", .help = "go on after so many samples of the order"},
    KEY(ECHO) = {.name = "echo", .value = "F", .help = "use each sample, or batch, F times"},
    KEY(ECHO_AT) = {.name = "echo_at", .choices = "example|batch", .help = "what is repeated"},
    KEY(ECHO_BUFFER) = {.name = "echo_buffer",
                        .value = "K",
                        .help = "what is echoed is shuffled in a buffer of so many samples (100000)"},
    KEY(NODES) = {.name = "nodes", .value = "N,...", .help = "the node of each rank: its number, or its host"},
    KEY(LAYOUT) = {.name = "layout", .value = "DIGEST", .help = "plan from this layout and no other"},
    KEY(DIGEST) = {.name = "digest", .value = "DIGEST", .help = "answer with the plan of this digest or not at all"},
    KEY(FEED) = {.name = "feed", .choices = "no|yes", .help = "read ahead of the ranks on this node"},
    [PLAN_KEYS] = {0},
};

enum { BATCH_MOST = 1 << 30 };

struct parsing {
    const struct key_value *value;
    struct str *why;
    int error; /* the first one */
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

/* `what` says what is allowed where the number is out of its range. */
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
        refuse_value(p, -EINVAL, PLAN_KEY_SEED, "the order is given by `order`, so that no seed makes it");
    r->distinct = p->value[PLAN_KEY_DISTINCT].choice == 0;
}

static void take_ranks(struct parsing *p, struct plan_request *r)
{
    r->ranks = (uint32_t)take_number(p, PLAN_KEY_RANKS, 1, PLAN_RANKS_MOST, 1);
    r->batch = (uint32_t)take_number(p, PLAN_KEY_BATCH, 1, BATCH_MOST, 1);
    r->rank = p->error ? PLAN_ALL_RANKS : (uint32_t)take_number(p, PLAN_KEY_RANK, 0, r->ranks - 1, PLAN_ALL_RANKS);
    r->nodes = p->value[PLAN_KEY_NODES].text;
}

static void take_samples(struct parsing *p, struct plan_request *r)
{
    r->samples = p->value[PLAN_KEY_SAMPLES].text ? p->value[PLAN_KEY_SAMPLES].text : "all";
    r->under = p->value[PLAN_KEY_UNDER].text;
    r->match = p->value[PLAN_KEY_MATCH].text;
    r->count = take_number(p, PLAN_KEY_COUNT, 0, UINT32_MAX, UINT64_MAX);
}

/* Is it given? */
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
    };

    r.epoch = take_number(&p, PLAN_KEY_EPOCH, 0, UINT64_MAX, 0);
    take_ranks(&p, &r);
    take_order(&p, &r);
    take_samples(&p, &r);
    r.skip = take_number(&p, PLAN_KEY_SKIP, 0, UINT64_MAX, 0);
    r.echo = take_millionths(&p, PLAN_KEY_ECHO, ECHO_ONE, ECHO_MOST, "must be 1 to 1000");
    r.echo_buffer = (uint32_t)take_number(&p, PLAN_KEY_ECHO_BUFFER, 0, UINT32_MAX, ECHO_BUFFER);
    r.pinned = take_digest(&p, PLAN_KEY_LAYOUT, &r.layout);
    r.digested = take_digest(&p, PLAN_KEY_DIGEST, &r.digest);
    if (!p.error)
        *request = r;
    return p.error;
}

/* --- nodes= --- */

static int refuse_node(int error, uint32_t rank, const char *word, size_t n, const char *what, struct str *why)
{
    str_addf(why, "`nodes`: rank %" PRIu32 " is on `", rank);
    str_add_printable(why, word, n);
    str_addf(why, "`, %s", what);
    return error;
}

/* A number of a node, or the name of a host that has one node. */
static int find_node(const char *const *host, uint32_t nodes, uint32_t rank, const char *word, size_t n, uint32_t *node,
                     struct str *why)
{
    char text[256];
    uint64_t number;
    uint32_t found = 0;

    if (n == 0 || n >= sizeof text)
        return refuse_node(-EINVAL, rank, word, n < sizeof text ? n : sizeof text, "which is no node", why);
    memcpy(text, word, n);
    text[n] = '\0';
    if (text[strspn(text, "0123456789")] == '\0') {
        if (number_parse(text, 0, nodes - 1, &number))
            return refuse_node(-ENOENT, rank, word, n, "a number that no node of the layout has", why);
        *node = (uint32_t)number;
        return 0;
    }
    for (uint32_t v = 0; v < nodes; v++)
        if (strcmp(host[v], text) == 0) {
            *node = v;
            found++;
        }
    if (found == 1)
        return 0;
    return refuse_node(found ? -EINVAL : -ENOENT, rank, word, n,
                       found ? "a host with several nodes: give their numbers" : "where no node of the layout is", why);
}

int plan_request_nodes(const struct plan_request *request, const char *const *host, uint32_t nodes,
                       uint32_t *node_of_rank, struct str *why)
{
    const char *at = request->nodes;

    for (uint32_t rank = 0; rank < request->ranks; rank++) {
        size_t n = strcspn(at, ",");
        int error = find_node(host, nodes, rank, at, n, &node_of_rank[rank], why);
        if (error)
            return error;
        at += n;
        if ((*at == ',') != (rank + 1 < request->ranks)) {
            str_addf(why, "`nodes` has %s entries than the %" PRIu32 " ranks", *at ? "more" : "fewer", request->ranks);
            return -EINVAL;
        }
        at += *at == ',';
    }
    return 0;
}
