/* The values of a `plan` request. */
#include "fs/plan/request.h"

#include "fs/base/size.h"
#include "fs/plan/echo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const plan_key_names[PLAN_KEYS] = {
    [PLAN_KEY_EPOCH] = "epoch",       [PLAN_KEY_RANKS] = "ranks",
    [PLAN_KEY_BATCH] = "batch",       [PLAN_KEY_RANK] = "rank",
    [PLAN_KEY_REPLY] = "reply",       [PLAN_KEY_SEED] = "seed",
    [PLAN_KEY_ORDER] = "order",       [PLAN_KEY_SAMPLES] = "samples",
    [PLAN_KEY_UNDER] = "under",       [PLAN_KEY_MATCH] = "match",
    [PLAN_KEY_COUNT] = "count",       [PLAN_KEY_DISTINCT] = "distinct",
    [PLAN_KEY_MODE] = "mode",         [PLAN_KEY_TAIL] = "tail",
    [PLAN_KEY_SKIP] = "skip",         [PLAN_KEY_ECHO] = "echo",
    [PLAN_KEY_ECHO_AT] = "echo_at",   [PLAN_KEY_ECHO_BUFFER] = "echo_buffer",
    [PLAN_KEY_NODES] = "nodes",       [PLAN_KEY_DIRECTORY] = "directory",
};

const char *const plan_key_choices[PLAN_KEYS] = {
    [PLAN_KEY_REPLY] = "text|u32|u64|summary",
    [PLAN_KEY_ORDER] = "u32|u64|text|natural",
    [PLAN_KEY_DISTINCT] = "yes|no",
    [PLAN_KEY_MODE] = "locality|regular|local",
    [PLAN_KEY_TAIL] = "pad|drop|short",
    [PLAN_KEY_ECHO_AT] = "example|batch",
};

enum { BATCH_MOST = 1 << 30, ECHO_DIGITS = 6 };

struct parsing {
    const char *const *value;
    struct str *why;
    int error; /* the first one */
};

static void refuse(struct parsing *p, int error, enum plan_key key, const char *what)
{
    if (p->error)
        return;
    p->error = error;
    str_addf(p->why, "`%s=", plan_key_names[key]);
    str_add_printable(p->why, p->value[key], strlen(p->value[key]));
    str_addf(p->why, "`: %s", what);
}

static uint64_t take_number(struct parsing *p, enum plan_key key, uint64_t min, uint64_t max, uint64_t otherwise)
{
    char limits[96];
    uint64_t number = otherwise;

    if (!p->value[key])
        return otherwise;
    int error = number_parse(p->value[key], min, max, &number);
    if (!error)
        return number;
    snprintf(limits, sizeof limits, "must be a whole number of %" PRIu64 " to %" PRIu64, min, max);
    refuse(p, error, key, limits);
    return otherwise;
}

/* Which of the key's choices: the enum's value. */
static unsigned take_choice(struct parsing *p, enum plan_key key, unsigned otherwise)
{
    const char *choice = plan_key_choices[key], *text = p->value[key];

    for (unsigned i = 0; text && *choice; i++) {
        size_t n = strcspn(choice, "|");
        if (strlen(text) == n && memcmp(choice, text, n) == 0)
            return i;
        choice += n + (choice[n] == '|');
    }
    if (text) {
        char known[96];
        snprintf(known, sizeof known, "is not one of %s", plan_key_choices[key]);
        refuse(p, -EINVAL, key, known);
    }
    return otherwise;
}

/* "1.5" in millionths, without floating point: every node must come to the same. */
static uint32_t take_echo(struct parsing *p)
{
    const char *text = p->value[PLAN_KEY_ECHO];
    uint64_t value = 0;
    int decimals = -1;

    if (!text)
        return ECHO_ONE;
    for (const char *c = text; *c; c++) {
        if (*c == '.' && decimals < 0 && c > text) {
            decimals = 0;
        } else if (*c < '0' || *c > '9' || decimals == ECHO_DIGITS) {
            refuse(p, -EINVAL, PLAN_KEY_ECHO, "must be a number such as 2 or 1.5, of at most six decimals");
            return ECHO_ONE;
        } else {
            value = value > ECHO_MOST ? value : value * 10 + (uint64_t)(*c - '0');
            decimals += decimals >= 0;
        }
    }
    if (!*text || decimals == 0) {
        refuse(p, -EINVAL, PLAN_KEY_ECHO, "must be a number such as 2 or 1.5");
        return ECHO_ONE;
    }
    for (int i = decimals < 0 ? 0 : decimals; i < ECHO_DIGITS && value <= ECHO_MOST; i++)
        value *= 10;
    if (value < ECHO_ONE || value > ECHO_MOST) {
        refuse(p, -ERANGE, PLAN_KEY_ECHO, "must be 1 to 1000");
        return ECHO_ONE;
    }
    return (uint32_t)value;
}

static void take_order(struct parsing *p, struct plan_request *r)
{
    r->order = p->value[PLAN_KEY_ORDER] ? PLAN_ORDER_U32 + take_choice(p, PLAN_KEY_ORDER, 0) : PLAN_ORDER_SEED;
    r->seed = take_number(p, PLAN_KEY_SEED, 0, UINT64_MAX, 0);
    if (p->value[PLAN_KEY_ORDER] && p->value[PLAN_KEY_SEED])
        refuse(p, -EINVAL, PLAN_KEY_SEED, "the order is given by `order`, so that no seed makes it");
    r->distinct = take_choice(p, PLAN_KEY_DISTINCT, 0) == 0;
}

static void take_ranks(struct parsing *p, struct plan_request *r)
{
    r->ranks = (uint32_t)take_number(p, PLAN_KEY_RANKS, 1, PLAN_RANKS_MOST, 1);
    r->batch = (uint32_t)take_number(p, PLAN_KEY_BATCH, 1, BATCH_MOST, 1);
    r->rank = PLAN_ALL_RANKS;
    if (!p->error && p->value[PLAN_KEY_RANK])
        r->rank = (uint32_t)take_number(p, PLAN_KEY_RANK, 0, r->ranks - 1, 0);
    r->nodes = p->value[PLAN_KEY_NODES];
}

static void take_samples(struct parsing *p, struct plan_request *r)
{
    r->samples = p->value[PLAN_KEY_SAMPLES] ? p->value[PLAN_KEY_SAMPLES] : "all";
    r->under = p->value[PLAN_KEY_UNDER];
    r->match = p->value[PLAN_KEY_MATCH];
    r->count = take_number(p, PLAN_KEY_COUNT, 0, UINT32_MAX, UINT64_MAX);
}

static void take_directory(struct parsing *p, struct plan_request *r)
{
    const char *text = p->value[PLAN_KEY_DIRECTORY];

    r->pinned = text != NULL;
    if (text && digest_parse(text, &r->directory))
        refuse(p, -EINVAL, PLAN_KEY_DIRECTORY, "must be a digest of 32 hexadecimal digits, as `status` shows it");
}

int plan_request_parse(const char *const value[PLAN_KEYS], struct plan_request *request, struct str *why)
{
    static const enum plan_key required[] = {PLAN_KEY_EPOCH, PLAN_KEY_RANKS, PLAN_KEY_BATCH};
    struct parsing p = {.value = value, .why = why};
    struct plan_request r = {0};

    for (size_t i = 0; i < sizeof required / sizeof *required; i++)
        if (!value[required[i]]) {
            str_addf(why, "`plan` needs `%s=…`", plan_key_names[required[i]]);
            return -EINVAL;
        }
    r.epoch = take_number(&p, PLAN_KEY_EPOCH, 0, UINT64_MAX, 0);
    take_ranks(&p, &r);
    take_order(&p, &r);
    take_samples(&p, &r);
    r.reply = take_choice(&p, PLAN_KEY_REPLY, REPLY_TEXT);
    r.mode = take_choice(&p, PLAN_KEY_MODE, PLAN_LOCALITY);
    r.tail = take_choice(&p, PLAN_KEY_TAIL, TAIL_PAD);
    r.skip = take_number(&p, PLAN_KEY_SKIP, 0, UINT64_MAX, 0);
    r.echo = take_echo(&p);
    r.echo_at = take_choice(&p, PLAN_KEY_ECHO_AT, ECHO_AT_EXAMPLE);
    r.echo_buffer = (uint32_t)take_number(&p, PLAN_KEY_ECHO_BUFFER, 0, UINT32_MAX, 0);
    take_directory(&p, &r);
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
            return refuse_node(-ENOENT, rank, word, n, "a number that no node of the directory has", why);
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
                       found ? "a host with several nodes: give their numbers" : "where no node of the directory is", why);
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
