/* Numbers of two statuses, and the lines made of them. */
#include "cli/live/gauges.h"

#include "cli/live/client.h"
#include "fs/base/cleanup.h"
#include "fs/base/json.h"
#include "fs/base/size.h"
#include "fs/wire/node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const gauge_order_names[GAUGE_ORDERS] = {"name", "files", "bytes", "late"};
static const char *const places[GAUGE_PLACES] = {"ram", "ssd", "peer", "source"};

static uint64_t number_at(const struct str *status, const char *format, ...)
{
    CLEANUP_STR struct str path = STR_INIT;
    va_list args;

    va_start(args, format);
    str_addv(&path, format, args);
    va_end(args);
    return path.failed || !path.data || status->length == 0 ? 0 : client_number(status, path.data);
}

static bool true_at(const struct str *status, const char *path)
{
    const char *value;

    return json_find(status->data, status->length, path, &value) == 4 && memcmp(value, "true", 4) == 0;
}

static void text_at(const struct str *status, const char *path, char *text, size_t n)
{
    CLEANUP_STR struct str found = STR_INIT;

    text[0] = '\0';
    if (json_find_string(status->data, status->length, path, &found) == 0 && found.data)
        snprintf(text, n, "%.*s", (int)n - 1, found.data);
}

/* A new server counts anew: then there is no rate. */
static double rate_of(uint64_t before, uint64_t now, double seconds)
{
    return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

/* ---- ranks ---- */

/* What a status has more of is passed over: it was written by whoever runs the mount. */
enum { PLANS_MOST = 8, LISTS_MOST = PLANS_MOST * GAUGE_RANKS };

/* How much a list had been read in the status before. */
struct list_before {
    uint64_t number, rank, read;
};

struct lists_before {
    struct list_before list[LISTS_MOST];
    unsigned count;
};

/* One element after the other of an array. */
struct element_cursor {
    const char *rest;
    size_t left;
};

static struct element_cursor open_array(const struct str *text, const char *path)
{
    struct element_cursor c = {0};
    long n = text->length > 0 ? json_find(text->data, text->length, path, &c.rest) : 0;

    c.left = n > 0 ? (size_t)n : 0;
    return c;
}

static bool next_element(struct element_cursor *c, struct str *element)
{
    const char *value;
    long n = c->left > 0 ? json_next(&c->rest, &c->left, &value) : -ENOENT;

    if (n > 0)
        *element = (struct str){.data = (char *)value, .length = (size_t)n}; /* a slice */
    return n > 0;
}

static void read_before(const struct str *before, struct lists_before *b)
{
    struct element_cursor plans = open_array(before, "feed.plans");
    struct str plan, rank;

    for (unsigned p = 0; p < PLANS_MOST && next_element(&plans, &plan); p++) {
        struct element_cursor ranks = open_array(&plan, "ranks");
        uint64_t number = client_number(&plan, "number");
        while (b->count < LISTS_MOST && next_element(&ranks, &rank))
            b->list[b->count++] =
                (struct list_before){number, client_number(&rank, "rank"), client_number(&rank, "read")};
    }
}

static uint64_t find_before(const struct lists_before *b, uint64_t number, uint64_t rank)
{
    for (unsigned i = 0; i < b->count; i++)
        if (b->list[i].number == number && b->list[i].rank == rank)
            return b->list[i].read;
    return 0;
}

/* Of a rank that list counts which was read last of those that are being read; else the next, else the last. */
static bool is_rather(const struct rank_gauge *a, const struct rank_gauge *b)
{
    int place_a = a->ended ? 2 : a->read == 0, place_b = b->ended ? 2 : b->read == 0;

    if (place_a != place_b)
        return place_a < place_b;
    return place_a == 1 ? a->epoch < b->epoch : a->idle < b->idle;
}

static struct rank_gauge *choose_rank(struct node_gauge *g, const struct rank_gauge *found)
{
    for (unsigned i = 0; i < g->ranks; i++)
        if (g->rank[i].rank == found->rank)
            return is_rather(found, &g->rank[i]) ? &g->rank[i] : NULL;
    return g->ranks < GAUGE_RANKS ? &g->rank[g->ranks++] : NULL;
}

static void read_rank(const struct str *rank, struct rank_gauge *r)
{
    r->rank = client_number(rank, "rank");
    r->samples = client_number(rank, "samples");
    r->reached = client_number(rank, "reached");
    r->fed = client_number(rank, "fed");
    r->read = client_number(rank, "read");
    r->late = client_number(rank, "late");
    r->again = client_number(rank, "again");
    r->ahead = client_number(rank, "ahead");
    r->idle = client_number(rank, "idle_ms");
    r->ended = true_at(rank, "ended");
}

/* `b`: NULL: there is no status before. */
static void read_plan(const struct lists_before *b, const struct str *plan, double seconds, struct node_gauge *g)
{
    struct element_cursor ranks = open_array(plan, "ranks");
    uint64_t number = client_number(plan, "number");
    struct rank_gauge found = {.epoch = client_number(plan, "epoch"), .guessed = true_at(plan, "guessed")};
    struct str rank;

    for (unsigned r = 0; r < GAUGE_RANKS && next_element(&ranks, &rank); r++) {
        read_rank(&rank, &found);
        if (found.samples == 0)
            continue;
        found.files = b ? rate_of(find_before(b, number, found.rank), found.read, seconds) : 0;
        g->files += found.files;
        struct rank_gauge *to = choose_rank(g, &found);
        if (to)
            *to = found;
    }
}

static int by_rank(const void *a, const void *b)
{
    const struct rank_gauge *x = a, *y = b;

    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void read_ranks(const struct str *before, const struct str *status, double seconds, struct node_gauge *g)
{
    CLEANUP_FREE struct lists_before *b = before->length > 0 ? calloc(1, sizeof *b) : NULL;
    struct element_cursor plans = open_array(status, "feed.plans");
    struct str plan;

    if (b)
        read_before(before, b);
    for (unsigned p = 0; p < PLANS_MOST && next_element(&plans, &plan); p++)
        read_plan(b, &plan, seconds, g);
    if (g->ranks > 0)
        qsort(g->rank, g->ranks, sizeof *g->rank, by_rank);
    for (unsigned i = 0; i < g->ranks; i++)
        g->late += g->rank[i].late;
}

/* ---- the node ---- */

static void read_peers(const struct str *before, const struct str *status, struct node_gauge *g)
{
    struct element_cursor now = open_array(status, "world"), then = open_array(before, "world");
    struct str peer, was;

    for (unsigned i = 0; i < NODES_MOST && next_element(&now, &peer); i++) {
        if (!next_element(&then, &was))
            was = (struct str)STR_INIT;
        uint64_t answers = number_at(&peer, "answers") - number_at(&was, "answers");
        uint64_t us = number_at(&peer, "answer_us") - number_at(&was, "answer_us");
        double ms = answers > 0 && answers < INT64_MAX && us < INT64_MAX ? (double)us / (double)answers / 1000 : 0;
        if (ms > g->slowest_ms) {
            g->slowest_ms = ms;
            g->slowest = i;
        }
    }
}

void gauge_read(const struct str *before, const struct str *status, double seconds, struct node_gauge *g)
{
    uint64_t reads = 0, were = 0;

    *g = (struct node_gauge){.mountpoint = g->mountpoint, .known = status->length > 0};
    if (!g->known)
        return;
    text_at(status, "state", g->state, sizeof g->state);
    text_at(status, "host", g->host, sizeof g->host);
    g->node = client_number(status, "node");
    g->nodes = client_number(status, "nodes");
    for (int i = 0; i < GAUGE_PLACES; i++) {
        uint64_t now = number_at(status, "bytes.%s", places[i]) + number_at(status, "fed.bytes.%s", places[i]);
        uint64_t then = number_at(before, "bytes.%s", places[i]) + number_at(before, "fed.bytes.%s", places[i]);
        g->bytes[i] = before->length > 0 ? rate_of(then, now, seconds) : 0;
        reads += number_at(status, "reads.%s", places[i]);
        were += number_at(before, "reads.%s", places[i]);
    }
    g->window = client_number(status, "feed.window");
    g->ahead = client_number(status, "feed.ahead");
    g->waiting = client_number(status, "feed.waiting");
    g->off = true_at(status, "feed.off");
    read_ranks(before, status, seconds, g);
    read_peers(before, status, g);
    if (g->ranks == 0 && before->length > 0)
        g->files = rate_of(were, reads, seconds);
}

/* ---- order ---- */

static double bytes_of_all(const struct node_gauge *g)
{
    double all = 0;

    for (int i = 0; i < GAUGE_PLACES; i++)
        all += g->bytes[i];
    return all;
}

static double weigh(const struct node_gauge *g, enum gauge_order by)
{
    return by == GAUGE_BY_FILES ? g->files : by == GAUGE_BY_BYTES ? bytes_of_all(g) : (double)g->late;
}

static int compare_gauges(const void *a, const void *b, void *order)
{
    const struct node_gauge *x = a, *y = b;
    enum gauge_order by = *(enum gauge_order *)order;

    if (by != GAUGE_BY_NAME && weigh(x, by) != weigh(y, by))
        return weigh(x, by) < weigh(y, by) ? 1 : -1;
    return strcmp(x->mountpoint, y->mountpoint);
}

void gauges_sort(struct node_gauge *gauges, unsigned n, enum gauge_order by)
{
    if (n > 0)
        qsort_r(gauges, n, sizeof *gauges, compare_gauges, &by);
}

/* ---- lines ---- */

/* Columns at its end may be empty. */
static void add_line(struct str *out, struct str *line)
{
    while (line->length > 0 && line->data[line->length - 1] == ' ')
        line->length--;
    str_add(out, line->data ? line->data : "", line->length);
    str_adds(out, "\n");
}

void gauges_add_head(struct str *out)
{
    CLEANUP_STR struct str line = STR_INIT;

    str_addf(&line, "%-24s %5s %5s %9s %8s %8s %8s %8s %8s %8s %7s  %s", "NODE, RANK", "EPOCH", "DONE", "FILES/S",
             "RAM MB/S", "SSD", "PEER", "SOURCE", "AHEAD", "WINDOW", "LATE", "SLOWEST PEER");
    add_line(out, &line);
}

static void add_node(struct str *out, const struct node_gauge *g)
{
    CLEANUP_STR struct str line = STR_INIT, name = STR_INIT;
    char ahead[SIZE_TEXT], window[SIZE_TEXT];
    size_t length = strlen(g->mountpoint), shown = length > 24 ? 21 : length;

    str_adds(&name, length > 24 ? "..." : ""); /* the end tells mounts of one machine apart */
    str_add_printable(&name, g->mountpoint + length - shown, shown);
    str_addf(&line, "%-24s ", name.failed ? "?" : name.data);
    if (!g->known) {
        str_adds(&line, "does not answer");
        add_line(out, &line);
        return;
    }
    str_addf(&line, "%5s %5s %9.0f %8.1f %8.1f %8.1f %8.1f %8s %8s %7" PRIu64 "  ", "", "", g->files, g->bytes[0] / 1e6,
             g->bytes[1] / 1e6, g->bytes[2] / 1e6, g->bytes[3] / 1e6, size_format(g->ahead, ahead, sizeof ahead),
             g->off ? "off" : size_format(g->window, window, sizeof window), g->late);
    if (g->slowest_ms > 0)
        str_addf(&line, "node %" PRIu64 " %.1f ms", g->slowest, g->slowest_ms);
    else
        str_addf(&line, "-");
    if (g->nodes > 1 || strcmp(g->state, "alone") != 0) {
        str_addf(&line, "   node %" PRIu64 " of %" PRIu64 " ", g->node, g->nodes);
        str_add_printable(&line, g->state, strlen(g->state));
    }
    add_line(out, &line);
}

static void add_rank(struct str *out, const struct rank_gauge *r)
{
    CLEANUP_STR struct str line = STR_INIT;
    char bytes[SIZE_TEXT];
    uint64_t files = r->fed > r->reached ? r->fed - r->reached : 0;

    str_addf(&line, "  rank %-17" PRIu64 " %4" PRIu64 "%s %4d%% %9.0f %8s %8s %8s %8s %8s %8s %7" PRIu64, r->rank,
             r->epoch, r->guessed ? "?" : " ",
             (int)(r->read < r->samples ? 100 * (double)r->read / (double)r->samples : 100), r->files, "", "", "", "",
             size_format(r->ahead, bytes, sizeof bytes), "", r->late);
    str_addf(&line, "  %" PRIu64 " files ahead", files);
    add_line(out, &line);
}

void gauges_add_lines(struct str *out, const struct node_gauge *g)
{
    add_node(out, g);
    for (unsigned i = 0; i < g->ranks; i++)
        add_rank(out, &g->rank[i]);
}

/* ---- JSON ---- */

static void add_json_rank(struct json *j, const struct rank_gauge *r)
{
    json_begin_object(j, NULL);
    json_uint(j, "rank", r->rank);
    json_uint(j, "epoch", r->epoch);
    json_bool(j, "guessed", r->guessed);
    json_uint(j, "samples", r->samples);
    json_uint(j, "read", r->read);
    json_uint(j, "reached", r->reached);
    json_uint(j, "fed", r->fed);
    json_uint(j, "ahead", r->ahead);
    json_uint(j, "late", r->late);
    json_uint(j, "again", r->again);
    json_fixed(j, "files_per_second", r->files, 1);
    json_end_object(j);
}

static void add_json_node(struct json *j, const struct node_gauge *g)
{
    json_begin_object(j, NULL);
    json_string(j, "mountpoint", g->mountpoint);
    json_bool(j, "answers", g->known);
    if (g->known) {
        json_string(j, "state", g->state);
        json_string(j, "host", g->host);
        json_uint(j, "node", g->node);
        json_uint(j, "nodes", g->nodes);
        json_fixed(j, "files_per_second", g->files, 1);
        json_begin_object(j, "bytes_per_second");
        for (int i = 0; i < GAUGE_PLACES; i++)
            json_fixed(j, places[i], g->bytes[i], 0);
        json_end_object(j);
        json_uint(j, "window", g->window);
        json_uint(j, "ahead", g->ahead);
        json_uint(j, "waiting", g->waiting);
        json_uint(j, "late", g->late);
        if (g->slowest_ms > 0) {
            json_uint(j, "slowest_peer", g->slowest);
            json_fixed(j, "slowest_peer_ms", g->slowest_ms, 3);
        }
        json_begin_array(j, "ranks");
        for (unsigned i = 0; i < g->ranks; i++)
            add_json_rank(j, &g->rank[i]);
        json_end_array(j);
    }
    json_end_object(j);
}

void gauges_add_json(struct str *out, const struct node_gauge *gauges, unsigned n)
{
    struct json json = {.out = out};

    json_begin_array(&json, NULL);
    for (unsigned i = 0; i < n; i++)
        add_json_node(&json, &gauges[i]);
    json_end_array(&json);
    str_adds(out, "\n");
}
