/* Computes rates from two statuses, and formats lines with them. */
#include "cli/live/gauges.h"

#include "fs/base/json.h"
#include "fs/wire/node.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const gauge_order_names[GAUGE_ORDERS] = {"name", "files", "bytes", "late"};

/* A new server counts from zero: then there is no rate. */
static double rate_of(uint64_t before, uint64_t now, double seconds)
{
    return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

/* --- ranks --- */

/* More of them are ignored: the user of the mount wrote the text. */
enum { PLANS_MOST = 8 };

/* The object of an array in which `key` is `number`; empty: there is none. */
static struct str find_object(const struct str *json, const char *array, const char *key, uint64_t number)
{
    struct figures_list list = figures_list_of(json, array);
    struct str object;
    for (unsigned i = 0; i < GAUGE_RANKS && figures_next(&list, &object); i++)
        if (figures_number(&object, "%s", key) == number)
            return object;
    return (struct str)STR_INIT;
}

/* 0: it is being read; 1: it is the next; 2: it has ended. */
static int stage_of(const struct rank_gauge *r)
{
    return figures_is(&r->json, "ended", "true") ? 2 : figures_number(&r->json, "read") == 0;
}

/* Which list of a rank to show: of those being read, the one read last; else the next, else the last. */
static bool is_rather(const struct rank_gauge *a, const struct rank_gauge *b)
{
    int stage_a = stage_of(a), stage_b = stage_of(b);
    if (stage_a != stage_b)
        return stage_a < stage_b;
    return stage_a == 1 ? a->epoch < b->epoch
                        : figures_number(&a->json, "idle_ms") < figures_number(&b->json, "idle_ms");
}

static struct rank_gauge *choose_rank(struct node_gauge *g, const struct rank_gauge *found)
{
    for (unsigned i = 0; i < g->ranks; i++)
        if (g->rank[i].rank == found->rank)
            return is_rather(found, &g->rank[i]) ? &g->rank[i] : NULL;
    return g->ranks < GAUGE_RANKS ? &g->rank[g->ranks++] : NULL;
}

static void read_plan(const struct str *before, const struct str *plan, double seconds, struct node_gauge *g)
{
    struct figures_list ranks = figures_list_of(plan, "ranks");
    struct str plan_before = find_object(before, "feed.plans", "number", figures_number(plan, "number"));
    struct rank_gauge found = {.epoch = figures_number(plan, "epoch"), .guessed = figures_is(plan, "guessed", "true")};
    for (unsigned r = 0; r < GAUGE_RANKS && figures_next(&ranks, &found.json); r++) {
        if (figures_number(&found.json, "samples") == 0)
            continue;
        found.rank = figures_number(&found.json, "rank");
        struct str was = find_object(&plan_before, "ranks", "rank", found.rank);
        found.files = rate_of(figures_number(&was, "read"), figures_number(&found.json, "read"), seconds);
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
    struct figures_list plans = figures_list_of(status, "feed.plans");
    struct str plan;
    for (unsigned p = 0; p < PLANS_MOST && figures_next(&plans, &plan); p++)
        read_plan(before, &plan, before->length > 0 ? seconds : 0, g);
    if (g->ranks > 0)
        qsort(g->rank, g->ranks, sizeof *g->rank, by_rank);
    for (unsigned i = 0; i < g->ranks; i++)
        g->late += figures_number(&g->rank[i].json, "late");
}

/* --- the node --- */

static void read_peers(const struct str *before, const struct str *status, struct node_gauge *g)
{
    struct figures_list now = figures_list_of(status, "world"), then = figures_list_of(before, "world");
    struct str peer, was;
    for (unsigned i = 0; i < NODES_MOST && figures_next(&now, &peer); i++) {
        if (!figures_next(&then, &was))
            was = (struct str)STR_INIT;
        uint64_t answers = figures_number(&peer, "answers") - figures_number(&was, "answers");
        uint64_t us = figures_number(&peer, "answer_us") - figures_number(&was, "answer_us");
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
    *g = (struct node_gauge){.mountpoint = g->mountpoint, .status = {.data = status->data, .length = status->length}};
    for (int i = 0; i < FIGURES_PLACES && before->length > 0; i++) {
        const char *place = figures_places[i];
        g->bytes[i] =
            rate_of(figures_number(before, "bytes.%s", place) + figures_number(before, "fed.bytes.%s", place),
                    figures_number(status, "bytes.%s", place) + figures_number(status, "fed.bytes.%s", place), seconds);
        reads += figures_number(status, "reads.%s", place);
        were += figures_number(before, "reads.%s", place);
    }
    read_ranks(before, status, seconds, g);
    read_peers(before, status, g);
    g->read_ms = (double)figures_number(status, "slowest.us") / 1000;
    if (g->ranks == 0 && before->length > 0)
        g->files = rate_of(were, reads, seconds);
}

/* --- order --- */

static double bytes_of_all(const struct node_gauge *g)
{
    double all = 0;
    for (int i = 0; i < FIGURES_PLACES; i++)
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

/* --- lines --- */

/* Trailing columns may be empty. */
static void add_line(struct str *out, struct str *line)
{
    while (line->length > 0 && line->data[line->length - 1] == ' ')
        line->length--;
    str_add(out, line->data ? line->data : "", line->length);
    str_adds(out, "\n");
}

/* 80 columns in all. Bytes are megabytes, per second except those ahead. */
enum { NAME_WIDTH = 18 };
#define NAME_COLUMN "%-18s"
#define COLUMNS " %5s %4s %7s %6s %6s %6s %6s %6s %5s"

void gauges_add_head(struct str *out)
{
    str_addf(out, NAME_COLUMN COLUMNS "\n", "NODE, RANK", "EPOCH", "DONE", "FILES/S", "RAM MB", "SSD", "PEER", "SOURCE",
             "AHEAD", "LATE");
}

static const char *in_megabytes(double bytes, char text[16])
{
    snprintf(text, 16, bytes < 99.95e6 ? "%.1f" : "%.0f", bytes / 1e6);
    return text;
}

/* The rank with the most late samples; NULL: there are none. */
static const struct rank_gauge *slowest_rank(const struct node_gauge *g)
{
    const struct rank_gauge *slowest = NULL;
    for (unsigned i = 0; i < g->ranks; i++)
        if (figures_number(&g->rank[i].json, "late") > (slowest ? figures_number(&slowest->json, "late") : 0))
            slowest = &g->rank[i];
    return slowest;
}

/* What is slow: a rank's loader waits, another node answers late, reads wait for a place. */
static void add_slow(struct str *out, const struct node_gauge *g)
{
    CLEANUP_STR struct str line = STR_INIT;
    const struct rank_gauge *rank = slowest_rank(g);
    const char *place = NULL, *comma = "";
    uint64_t most = 0;
    for (int i = 0; i < FIGURES_PLACES; i++) {
        uint64_t waits = figures_number(&g->status, "fed.waits.%s", figures_places[i]);
        place = waits > most ? figures_places[i] : place;
        most = waits > most ? waits : most;
    }
    str_adds(&line, "  slow:");
    if (rank) {
        str_addf(&line, " rank %" PRIu64 " (%" PRIu64 " late)", rank->rank, figures_number(&rank->json, "late"));
        comma = ",";
    }
    if (g->slowest_ms > 0) {
        str_addf(&line, "%s node %" PRIu64 " (%.1f ms)", comma, g->slowest, g->slowest_ms);
        comma = ",";
    }
    if (place)
        str_addf(&line, "%s %s (%" PRIu64 " reads wait)", comma, place, most);
    if (rank || place || g->slowest_ms > 0)
        add_line(out, &line);
}

/* The end of a text that does not fit: it distinguishes mounts of one machine, and samples of one class. */
static void add_end(struct str *out, const char *text, size_t width)
{
    CLEANUP_STR struct str shown = STR_INIT;
    str_add_printable(&shown, text, strlen(text));
    for (const char *from = text; shown.length > width && *from;) {
        from += shown.length - width < strlen(from) ? shown.length - width : strlen(from);
        str_clear(&shown);
        str_adds(&shown, "...");
        str_add_printable(&shown, from, strlen(from));
    }
    str_add(out, shown.length ? shown.data : "", shown.length);
}

enum { SLOW_MS = 1 /* a READ that took less is not shown */, LINE_WIDTH = 80 };

static void add_slowest_read(struct str *out, const struct node_gauge *g)
{
    CLEANUP_STR struct str line = STR_INIT, path = STR_INIT, from = STR_INIT;
    if (g->read_ms < SLOW_MS)
        return;
    json_find_string(g->status.data, g->status.length, "slowest.path", &path);
    json_find_string(g->status.data, g->status.length, "slowest.from", &from);
    str_addf(&line, "  slowest sample: %.0f ms from ", g->read_ms);
    add_end(&line, from.length ? from.data : "?", 8);
    str_adds(&line, path.length ? ": " : "");
    add_end(&line, path.length ? path.data : "", LINE_WIDTH - line.length);
    add_line(out, &line);
}

static void add_node(struct str *out, const struct node_gauge *g)
{
    CLEANUP_STR struct str line = STR_INIT, name = STR_INIT;
    char files[16], late[24], mb[FIGURES_PLACES][16], ahead[16];
    add_end(&name, g->mountpoint, NAME_WIDTH);
    str_addf(&line, NAME_COLUMN, name.failed ? "?" : name.data);
    if (g->status.length == 0) {
        str_adds(&line, " does not answer");
        add_line(out, &line);
        return;
    }
    snprintf(files, sizeof files, "%.0f", g->files);
    snprintf(late, sizeof late, "%" PRIu64, g->late);
    for (int i = 0; i < FIGURES_PLACES; i++)
        in_megabytes(g->bytes[i], mb[i]);
    bool off = figures_is(&g->status, "feed.off", "true");
    str_addf(&line, COLUMNS, "", "", files, mb[0], mb[1], mb[2], mb[3],
             off ? "off" : in_megabytes((double)figures_number(&g->status, "feed.ahead"), ahead), late);
    add_line(out, &line);
    if (figures_number(&g->status, "nodes") > 1 || !figures_is(&g->status, "state", "alone"))
        figures_add(out, &g->status, "  node {node} of {nodes} {state text}\n");
    add_slow(out, g);
    add_slowest_read(out, g);
}

static void add_rank(struct str *out, const struct rank_gauge *r)
{
    CLEANUP_STR struct str line = STR_INIT;
    uint64_t read = figures_number(&r->json, "read"), samples = figures_number(&r->json, "samples");
    char name[32], epoch[32], done[16], files[16], late[24], ahead[16];
    snprintf(name, sizeof name, "  rank %" PRIu64, r->rank);
    snprintf(epoch, sizeof epoch, "%" PRIu64 "%s", r->epoch, r->guessed ? "?" : "");
    snprintf(done, sizeof done, "%d%%", (int)(read < samples ? 100 * (double)read / (double)samples : 100));
    snprintf(files, sizeof files, "%.0f", r->files);
    snprintf(late, sizeof late, "%" PRIu64, figures_number(&r->json, "late"));
    str_addf(&line, NAME_COLUMN COLUMNS, name, epoch, done, files, "", "", "", "",
             in_megabytes((double)figures_number(&r->json, "ahead"), ahead), late);
    add_line(out, &line);
}

void gauges_add_lines(struct str *out, const struct node_gauge *g)
{
    add_node(out, g);
    for (unsigned i = 0; i < g->ranks; i++)
        add_rank(out, &g->rank[i]);
}

/* --- JSON --- */

static const char *last_part(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

static void copy_numbers(struct json *j, const struct str *from, const char *const *paths, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        json_uint(j, last_part(paths[i]), figures_number(from, "%s", paths[i]));
}

static void copy_string(struct json *j, const struct str *from, const char *key)
{
    CLEANUP_STR struct str text = STR_INIT;
    json_find_string(from->data, from->length, key, &text);
    json_string(j, last_part(key), text.data ? text.data : "");
}

static void add_json_rank(struct json *j, const struct rank_gauge *r)
{
    static const char *const numbers[] = {"samples", "read", "reached", "fed", "ahead", "late", "again"};
    json_begin_object(j, NULL);
    json_uints(j, {"rank", r->rank}, {"epoch", r->epoch});
    json_bool(j, "guessed", r->guessed);
    copy_numbers(j, &r->json, numbers, sizeof numbers / sizeof *numbers);
    json_fixed(j, "files_per_second", r->files, 1);
    json_end_object(j);
}

static void add_json_known(struct json *j, const struct node_gauge *g)
{
    static const char *const numbers[] = {"node", "nodes", "feed.window", "feed.ahead", "feed.waiting"};
    copy_string(j, &g->status, "state");
    copy_string(j, &g->status, "host");
    copy_numbers(j, &g->status, numbers, 2);
    json_fixed(j, "files_per_second", g->files, 1);
    json_begin_object(j, "bytes_per_second");
    for (int i = 0; i < FIGURES_PLACES; i++)
        json_fixed(j, figures_places[i], g->bytes[i], 0);
    json_end_object(j);
    copy_numbers(j, &g->status, numbers + 2, 3);
    json_uint(j, "late", g->late);
    if (g->slowest_ms > 0) {
        json_uint(j, "slowest_peer", g->slowest);
        json_fixed(j, "slowest_peer_ms", g->slowest_ms, 3);
    }
    if (g->read_ms > 0) {
        json_begin_object(j, "slowest_read");
        copy_string(j, &g->status, "slowest.path");
        copy_string(j, &g->status, "slowest.from");
        json_fixed(j, "ms", g->read_ms, 3);
        json_end_object(j);
    }
    json_begin_array(j, "ranks");
    for (unsigned i = 0; i < g->ranks; i++)
        add_json_rank(j, &g->rank[i]);
    json_end_array(j);
}

static void add_json_node(struct json *j, const struct node_gauge *g)
{
    json_begin_object(j, NULL);
    json_string(j, "mountpoint", g->mountpoint);
    json_bool(j, "answers", g->status.length > 0);
    if (g->status.length > 0)
        add_json_known(j, g);
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
