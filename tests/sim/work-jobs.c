/* Jobs: turns, plans of all ranks, resumed plans, plans of uploaded lists. Several jobs run concurrently, each in its
 * own epoch. */
#include "fs/plan/order.h"
#include "fs/plan/stop.h"
#include "tests/lib/tap.h"
#include "tests/sim/work-inside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MOST = 2 * NET_NODES, BATCH_MOST = 4, TURN_S = 20 };

enum mode { LOCALITY, REGULAR, LOCAL };
static const char *const mode_names[] = {"locality", "regular", "local"};

struct job {
    uint32_t number;
    uint64_t seed, epoch;
    enum mode mode;
    uint32_t batch, samples; /* samples: of its list */
    char list[32];           /* its own; "": all files */
    char layout[64];         /* that the last turn of it, or epoch, gave; "": none */
    uint32_t *order;
};

/* The lists of all ranks. */
struct dealt {
    uint32_t ranks, skip, length; /* length: of a rank's list */
    char pinned[160];
    uint32_t *list[RANKS_MOST];
};

static uint32_t random_node(void)
{
    return (uint32_t)sim_random(sim_options->nodes);
}

/* --- turns --- */

static void take_turn(struct job *j)
{
    struct str reply = STR_INIT;
    char text[128];
    uint64_t wait = faults_any() ? 1 + sim_random(TURN_S) : TURN_S;
    int n = sim_random(4) ? snprintf(text, sizeof text, "exchange epoch=%" PRIu64 " fraction=0.%" PRIu64, j->epoch,
                                     1 + sim_random(9))
                          : snprintf(text, sizeof text, "shuffle");
    snprintf(text + n, sizeof text - (size_t)n, " seed=%" PRIu64 " wait=%" PRIu64, j->seed, wait);
    const struct question q = {random_node(), text, wait * SECOND + SLACK, 0};
    work.early += !work_is_loaded();
    if (work_ask(&q, &reply) == 0 && !work_find(&reply, "layout", j->layout, sizeof j->layout))
        j->layout[0] = '\0'; /* there was no world */
    work.turns++;
    str_fini(&reply);
}

/* --- what the lists of all ranks are to be --- */

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* What all ranks have in a step is the global batch of it; the last one may be short. */
static void check_batches(const struct job *j, const struct dealt *d)
{
    uint32_t got[RANKS_MOST * BATCH_MOST], want[RANKS_MOST * BATCH_MOST];
    for (uint32_t at = 0; at < d->length; at += j->batch) {
        uint32_t batch = d->length - at < j->batch ? d->length - at : j->batch, many = d->ranks * batch;
        for (uint32_t r = 0; r < d->ranks; r++)
            memcpy(got + r * batch, d->list[r] + at, batch * sizeof *got);
        memcpy(want, j->order + d->skip + at * d->ranks, many * sizeof *want);
        qsort(got, many, sizeof *got, by_number);
        qsort(want, many, sizeof *want, by_number);
        if (memcmp(got, want, many * sizeof *got))
            sim_fail("job %u, epoch %" PRIu64 ", step %u after %u samples: the lists of all ranks are not the global "
                     "batch",
                     j->number, j->epoch, at / j->batch, d->skip);
    }
}

/* Where each rank has its own node's samples, none is there twice. */
static void check_distinct(const struct job *j, const struct dealt *d)
{
    bool seen[256] = {false};
    for (uint32_t r = 0; r < d->ranks; r++)
        for (uint32_t i = 0; i < d->length; i++) {
            uint32_t sample = d->list[r][i];
            if (sample >= j->samples || seen[sample])
                sim_fail("job %u, epoch %" PRIu64 ", rank %u: sample %u of %u is there twice, or not there", j->number,
                         j->epoch, r, sample, j->samples);
            seen[sample] = true;
        }
}

static void check_dealt(struct job *j, const struct dealt *d)
{
    static const struct plan_stop never = {NULL, NULL};
    if (order_seeded(j->order, j->samples, j->seed + j->epoch, &never))
        bail_out("an order");
    if (j->mode == LOCAL)
        check_distinct(j, d);
    else
        check_batches(j, d);
}

/* By as many ranks, after whole steps: each rank's list is the rest of what it was. */
static void check_rest(const struct job *j, const struct dealt *all, const struct dealt *rest)
{
    uint32_t from = rest->skip / rest->ranks;
    for (uint32_t r = 0; r < rest->ranks; r++)
        if (all->length - from != rest->length ||
            memcmp(all->list[r] + from, rest->list[r], rest->length * sizeof **rest->list))
            sim_fail("job %u, epoch %" PRIu64 ", rank %u: after %u samples its list is not the rest of it", j->number,
                     j->epoch, r, rest->skip);
}

/* --- plans --- */

static int plan_text(const struct job *j, const struct dealt *d, char *text, size_t room)
{
    int n = snprintf(text, room, "plan epoch=%" PRIu64 " ranks=%u batch=%u tail=drop seed=%" PRIu64 " mode=%s skip=%u",
                     j->epoch, d->ranks, j->batch, j->seed, mode_names[j->mode], d->skip);
    if (j->list[0])
        n += snprintf(text + n, room - (size_t)n, " samples=%s count=%u", j->list, j->samples);
    for (uint32_t r = 0; d->ranks % sim_options->nodes && r < d->ranks; r++)
        n += snprintf(text + n, room - (size_t)n, "%s%u", r ? "," : " nodes=", r % sim_options->nodes);
    return n;
}

/* A node that could not be asked during an upload has an older list of that name until the next join. By chance both
 * have the same number of samples. Only the digest then tells their plans apart. */
static bool may_differ(const struct job *j)
{
    return j->list[0] && faults_any();
}

/* The first request chooses the layout, or it is that of an earlier turn. A plan that was made without a world has
 * none, and is known by its digest. With a layout the plan is the same on any node that has the same list. */
static int pin_plan(struct job *j, struct dealt *d)
{
    struct str reply = STR_INIT;
    char text[512], digest[64] = "", again[64] = "";
    const struct question q = {random_node(), text, 0, 0}, other = {random_node(), text, 0, 0};
    int n = plan_text(j, d, text, sizeof text);
    snprintf(text + n, sizeof text - (size_t)n, " reply=summary%s", d->pinned);
    int error = work_ask(&q, &reply);
    bool world = !error && work_find(&reply, "layout", j->layout, sizeof j->layout);
    if (!world)
        j->layout[0] = '\0';
    if (!error && !work_find(&reply, "digest", digest, sizeof digest))
        sim_fail("node %u: %s: %s", q.node, text, reply.data);
    snprintf(d->pinned, sizeof d->pinned, world ? " layout=%s" : "", j->layout);
    if (!error && world && !may_differ(j) && sim_random(3) == 0) {
        snprintf(text + n, sizeof text - (size_t)n, " reply=summary%s", d->pinned);
        if (!work_ask(&other, &reply) && work_find(&reply, "digest", again, sizeof again) && strcmp(again, digest))
            sim_fail("node %u: %s: another plan than on node %u", other.node, text, q.node);
    }
    if (!error && (!world || may_differ(j) || sim_random(2)))
        snprintf(d->pinned + strlen(d->pinned), sizeof d->pinned - strlen(d->pinned), " digest=%s", digest);
    str_fini(&reply);
    return error;
}

/* Each rank asks its own node. */
static int deal(struct job *j, struct dealt *d)
{
    struct str reply = STR_INIT;
    char text[512];
    int error = pin_plan(j, d), n = plan_text(j, d, text, sizeof text);
    /* Made before its node was in the world; the others may be by now. */
    int tolerated = strstr(d->pinned, "layout=") ? 0 : -ESTALE;
    d->length = (j->samples - d->skip) / d->ranks;
    for (uint32_t rank = 0; rank < d->ranks && !error; rank++) {
        const struct question q = {rank % sim_options->nodes, text, 0, tolerated};
        snprintf(text + n, sizeof text - (size_t)n, " reply=u32 rank=%u%s", rank, d->pinned);
        error = work_ask(&q, &reply);
        if (!error && reply.length != d->length * sizeof(uint32_t))
            sim_fail("node %u: %s: %zu bytes, not %u", q.node, text, reply.length, d->length * 4);
        if (!error && d->length)
            memcpy(d->list[rank], reply.data, reply.length);
    }
    if (!error)
        check_dealt(j, d);
    str_fini(&reply);
    work.plans += !error;
    work.stale += error != 0;
    return error;
}

/* After a part of the epoch, by as many ranks or others. */
static void resume(struct job *j, const struct dealt *all, struct dealt *rest)
{
    bool same = j->mode == LOCAL || sim_random(2);
    uint32_t step = all->ranks * j->batch;
    rest->ranks = same ? all->ranks : 1 + (uint32_t)sim_random(RANKS_MOST);
    rest->skip = same ? step * (uint32_t)sim_random(j->samples / step + 1) : (uint32_t)sim_random(j->samples + 1);
    snprintf(rest->pinned, sizeof rest->pinned, j->layout[0] ? " layout=%s" : "", j->layout);
    if (j->mode == LOCAL && !j->layout[0])
        return;
    if (!deal(j, rest) && same && !may_differ(j) && j->layout[0] && strstr(all->pinned, j->layout))
        check_rest(j, all, rest);
}

static void give_list(struct job *j)
{
    struct str text = STR_INIT, reply = STR_INIT;
    const struct question q = {random_node(), NULL, 90 * SECOND, 0};
    struct question put = q;
    str_addf(&text, "samples name=job-%u\n", j->number);
    uint32_t samples = lists_add_paths(&text);
    put.text = text.data;
    if (work_ask(&put, &reply) == 0) {
        snprintf(j->list, sizeof j->list, "job-%u", j->number);
        j->samples = samples;
    }
    str_fini(&text);
    str_fini(&reply);
}

static void run_epoch(struct job *j, struct dealt *all, struct dealt *rest)
{
    all->ranks = sim_options->nodes * (1 + (uint32_t)sim_random(2));
    all->skip = 0;
    all->pinned[0] = '\0';
    if (j->layout[0] && sim_random(3) == 0)
        snprintf(all->pinned, sizeof all->pinned, " layout=%s", j->layout);
    if (!deal(j, all) && sim_random(2) && !work.ending)
        resume(j, all, rest);
}

static void *run_job(void *argument)
{
    struct job *j = argument;
    struct dealt all = {0}, rest = {0};
    for (uint32_t i = 0; i < RANKS_MOST; i++) {
        all.list[i] = calloc(j->samples + 1, sizeof **all.list);
        rest.list[i] = calloc(j->samples + 1, sizeof **all.list);
        if (!all.list[i] || !rest.list[i])
            bail_out("no memory for lists");
    }
    for (; work_rests(4 * SECOND); j->epoch++) {
        if (!j->list[0] && sim_random(8) == 0)
            give_list(j);
        if (!work.ending && j->epoch % 2)
            take_turn(j);
        if (!work.ending)
            run_epoch(j, &all, &rest);
    }
    return work_done();
}

void jobs_begin(void)
{
    for (uint32_t i = 0, many = 1 + (uint32_t)sim_random(3); i < many; i++) {
        struct job *j = calloc(1, sizeof *j);
        uint32_t files = catalog_files(sim_dataset.catalog);
        if (!j || !(j->order = calloc(files, sizeof *j->order)))
            bail_out("no memory for a job");
        j->number = i;
        j->samples = files;
        j->seed = sim_random(1000);
        j->epoch = sim_random(100);
        j->batch = 1 + (uint32_t)sim_random(BATCH_MOST);
        j->mode = sim_random(2) ? LOCALITY : (enum mode)sim_random(3);
        work_start("job", run_job, j, random_node());
    }
}
