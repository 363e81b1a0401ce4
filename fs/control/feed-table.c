/* Pairs that name the plan again, as a file of the control mount, and their place in shared memory. */
#include "fs/control/feed-table.h"

#include "fs/control/control-private.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/size.h"

#include <inttypes.h>
#include <string.h>

enum { NAME_MOST = 1000 /* of a file in the control mount, which also has a rank and a reply */ };
_Static_assert((int)NAME_MOST < (int)FEED_TEXT, "it ends with a zero");

/* In a name: neither a comma nor a slash. */
static void add_text(struct str *pairs, const char *key, const char *text)
{
    CLEANUP_STR struct str escaped = STR_INIT;
    if (!text)
        return;
    str_addf(pairs, ",%s=", key);
    str_add_percent(&escaped, text, strlen(text));
    for (size_t i = 0; i < escaped.length; i++)
        if (escaped.data[i] == '/')
            str_adds(pairs, "%2F");
        else
            str_add(pairs, &escaped.data[i], 1);
    pairs->failed |= escaped.failed;
}

static void add_digest(struct str *pairs, const char *key, const struct digest *digest)
{
    char text[DIGEST_TEXT];
    str_addf(pairs, ",%s=%s", key, digest_format(digest, text));
}

static void add_millionths(struct str *pairs, const char *key, uint32_t value)
{
    str_addf(pairs, ",%s=%u.%06u", key, (unsigned)(value / MILLION), (unsigned)(value % MILLION));
}

static void add_order(struct str *pairs, const struct feed_wish *wish)
{
    const struct plan_request *w = wish->wanted;
    if (plan_request_has_payload(w))
        add_digest(pairs, "digest", wish->digest); /* the order is not said again: the plan is kept */
    else if (w->order == PLAN_ORDER_NATURAL)
        str_adds(pairs, ",order=natural");
    else if (w->seed)
        str_addf(pairs, ",seed=%" PRIu64, w->seed);
}

/* Only what is not so by default. */
static void write_pairs(struct str *pairs, const struct feed_wish *wish)
{
    static const char *const mode[] = {
        [PLAN_LOCALITY] = "locality", [PLAN_REGULAR] = "regular", [PLAN_LOCAL] = "local"};
    static const struct digest never;
    const struct plan_request *w = wish->wanted;
    str_addf(pairs, "epoch=%" PRIu64 ",ranks=%" PRIu32 ",batch=%" PRIu32, w->epoch, w->ranks, w->batch);
    add_order(pairs, wish);
    if (strcmp(w->samples, "all") != 0)
        add_text(pairs, "samples", w->samples);
    add_text(pairs, "under", w->under);
    add_text(pairs, "match", w->match);
    if (w->mode != PLAN_LOCALITY)
        add_text(pairs, "mode", mode[w->mode]);
    if (w->tail)
        add_text(pairs, "tail", w->tail == 1 ? "drop" : "short");
    if (w->skip)
        str_addf(pairs, ",skip=%" PRIu64, w->skip);
    if (w->echo != ECHO_ONE) {
        add_millionths(pairs, "echo", w->echo);
        add_text(pairs, "echo_at", w->echo_at ? "batch" : "example");
        str_addf(pairs, ",echo_buffer=%" PRIu32, w->echo_buffer);
    }
    add_text(pairs, "nodes", w->nodes);
    if (memcmp(wish->layout, &never, sizeof never) != 0)
        add_digest(pairs, "layout", wish->layout);
}

static uint32_t list_ranks(const struct feed_wish *wish, uint32_t rank[FEED_RANKS])
{
    uint32_t ranks = wish->wanted->ranks, n = 0;
    for (uint32_t r = 0; r < ranks && n < FEED_RANKS; r++)
        if ((wish->node_of_rank ? wish->node_of_rank[r] : placement_even(wish->nodes, ranks, r)) == wish->me)
            rank[n++] = r;
    return n;
}

/* The place of the plan, or else the one whose asking is longest ago. */
static unsigned find_place(struct feed *feed, const char *pairs, struct feed_plan *there)
{
    uint64_t least = UINT64_MAX;
    unsigned oldest = 0;
    for (unsigned i = 0; i < FEED_PLANS; i++) {
        bool whole = feed_plan_get(feed, i, there);
        if (whole && there->number && strncmp(there->pairs, pairs, sizeof there->pairs) == 0)
            return i;
        uint64_t asked = whole ? there->asked : 0;
        if (asked < least) {
            least = asked;
            oldest = i;
        }
    }
    there->number = 0;
    return oldest;
}

static void write_plan(struct feed *feed, const struct feed_wish *wish, const struct str *pairs)
{
    struct feed_plan plan = {0};
    uint32_t ranks = list_ranks(wish, plan.rank);
    if (ranks == 0)
        return;
    struct feed_plan there;
    unsigned place = find_place(feed, pairs->data, &there);
    plan.asked = atomic_fetch_add(&feed->numbers, 1) + 1;
    plan.number = there.number ? there.number : plan.asked;
    plan.since = clock_now();
    plan.epoch = wish->wanted->epoch;
    plan.ranks = ranks;
    memcpy(plan.pairs, pairs->data, pairs->length);
    feed_plan_put(feed, place, &plan);
}

void feed_table_ask(struct control *control, const struct feed_wish *wish)
{
    CLEANUP_STR struct str pairs = STR_INIT;
    struct feed *feed = control->config.feed;
    if (!feed || control->config.mount->feed == 0)
        return;
    write_pairs(&pairs, wish);
    if (pairs.failed)
        return;
    if (pairs.length > NAME_MOST) {
        log_limited(LOG_LEVEL_WARNING, 1, "epoch %" PRIu64 " is not read ahead: its keys are too long",
                    wish->wanted->epoch);
        return;
    }
    pthread_mutex_lock(&control->feed_lock);
    write_plan(feed, wish, &pairs);
    pthread_mutex_unlock(&control->feed_lock);
}
