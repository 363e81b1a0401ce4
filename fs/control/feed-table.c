/* Writes the plans to be fed into shared memory. The pairs of a plan's request are its file name in the control mount,
 * by which the feeder reads it. */
#include "fs/control/feed-table.h"

#include "fs/control/control-private.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/size.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
    NAME_MOST = 1000, /* of a file name in the control mount, which also has a rank and a reply */
    WATCHER_S = 1,
    LEFT_S = 60,
};
_Static_assert((int)NAME_MOST < (int)FEED_TEXT, "it ends with a zero");

/* Escapes commas and slashes, for use in a file name. */
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
        add_digest(pairs, "digest", wish->digest); /* not the order itself: the plan with this digest is cached */
    else if (w->order == PLAN_ORDER_NATURAL)
        str_adds(pairs, ",order=natural");
    else if (w->seed)
        str_addf(pairs, ",seed=%" PRIu64, w->seed);
}

/* Leaves out defaults. `nodes`: instead of the text of this key; may be NULL. */
static void write_pairs(struct str *pairs, const struct feed_wish *wish, const struct digest *nodes)
{
    static const char *const mode[] = {
        [PLAN_LOCALITY] = "locality", [PLAN_REGULAR] = "regular", [PLAN_LOCAL] = "local"};
    static const struct digest never;
    const struct plan_request *w = wish->wanted;
    char text[DIGEST_TEXT];
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
    add_text(pairs, "without", w->without);
    if (w->cost) {
        add_text(pairs, "cost", w->cost);
        add_millionths(pairs, "balance", w->balance);
        str_addf(pairs, ",window=%" PRIu32, w->window);
    }
    if (nodes)
        str_addf(pairs, ",nodes=@%s", digest_format(nodes, text));
    else
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

/* Was this list not read for a while, and does its loader seem to read another list? */
static bool is_left(const struct feed *feed, unsigned slot, const struct feed_plan *plan, uint32_t i)
{
    const struct feed_rank *r = &feed->rank[slot][i];
    uint64_t seen = atomic_load(&r->seen), since = plan->asking[i].since;
    return atomic_load(&r->number) == plan->number && atomic_load(&r->flags) & FEED_LEFT &&
           clock_now() > (seen > since ? seen : since) + LEFT_S * SECOND;
}

/* Has every loader that requested a list of this plan reported its end, or moved to another epoch? */
static bool is_done(const struct feed *feed, unsigned slot, const struct feed_plan *plan)
{
    uint32_t asked = 0;
    for (uint32_t i = 0; i < plan->ranks && i < FEED_RANKS; i++) {
        if (plan->asking[i].asked && !plan->asking[i].ended && !is_left(feed, slot, plan, i))
            return false;
        asked += plan->asking[i].asked != 0;
    }
    return asked > 0;
}

enum place_worth { PLACE_FREE, PLACE_DONE, PLACE_GUESS, PLACE_READ, PLACE_NONE };

static enum place_worth worth_of(const struct feed *feed, unsigned slot, const struct feed_plan *plan)
{
    if (plan->number == 0)
        return PLACE_FREE;
    return plan->guessed ? PLACE_GUESS : is_done(feed, slot, plan) ? PLACE_DONE : PLACE_READ;
}

/* The place of this plan; else the place with the lowest worth; of these the oldest. -1: none for a guess. */
static int find_place(struct feed *feed, const char *pairs, bool guess, struct feed_plan *there)
{
    enum place_worth least = guess ? PLACE_READ : PLACE_NONE;
    uint64_t oldest = UINT64_MAX;
    int place = -1;
    for (unsigned i = 0; i < FEED_PLANS; i++) {
        if (!feed_plan_get(feed, i, there))
            there->number = there->asked = 0;
        if (there->number && strncmp(there->pairs, pairs, sizeof there->pairs) == 0)
            return (int)i;
        enum place_worth worth = worth_of(feed, i, there);
        if (worth > least || (worth == least && there->asked >= oldest))
            continue;
        if (guess && worth == PLACE_READ)
            continue;
        least = worth;
        oldest = there->asked;
        place = (int)i;
    }
    there->number = 0;
    return place;
}

/* The feeder's process id while it watches all directories; else 0. */
static uint32_t find_watcher(const struct feed *feed)
{
    uint32_t feeder = atomic_load(&feed->feeder);
    return feeder && atomic_load(&feed->watcher) == feeder ? feeder : 0;
}

/* A list that begins again before its end was reported may belong to another job with the same plan. Then an end cannot
 * be attributed to one of them, so no sample of the list is proved to be unread. */
static void begin_lists(struct feed *feed, unsigned slot, const struct feed_wish *wish, struct feed_plan *plan)
{
    const struct feed_asking asking = {
        .asked = plan->asked, .since = clock_now(), .notes = atomic_load(&feed->notes), .watcher = find_watcher(feed)};
    for (uint32_t i = 0; i < plan->ranks; i++) {
        if (wish->wanted->rank != PLAN_ALL_RANKS && wish->wanted->rank != plan->rank[i])
            continue;
        bool again = plan->asking[i].asked && !plan->asking[i].ended;
        plan->asking[i] = asking;
        atomic_store(&feed->told[slot][i], 0);
        if (again)
            plan->asking[i].watcher = 0;
    }
}

/* Number of the request; 0: nothing was written. */
static uint64_t write_plan(struct feed *feed, const struct feed_wish *wish, const struct str *pairs)
{
    struct feed_plan plan = {0}, there;
    uint32_t ranks = list_ranks(wish, plan.rank);
    int place = ranks ? find_place(feed, pairs->data, wish->guess, &there) : -1;
    if (place < 0 || (wish->guess && there.number))
        return 0;
    plan.asked = atomic_fetch_add(&feed->numbers, 1) + 1;
    plan.number = there.number ? there.number : plan.asked;
    plan.epoch = wish->wanted->epoch;
    plan.guessed = wish->guess;
    plan.ranks = ranks;
    if (there.number)
        memcpy(plan.asking, there.asking, sizeof plan.asking);
    if (!wish->guess)
        begin_lists(feed, (unsigned)place, wish, &plan);
    memcpy(plan.digest, wish->digest->byte, sizeof plan.digest);
    memcpy(plan.pairs, pairs->data, pairs->length);
    atomic_store(&feed->noting, 1);
    feed_plan_put(feed, (unsigned)place, &plan);
    return plan.asked;
}

/* For the lists that began with this request. */
static void set_watcher(struct feed *feed, uint64_t asked, uint32_t watcher)
{
    struct feed_plan plan;
    for (unsigned i = 0; i < FEED_PLANS; i++) {
        bool found = false;
        if (!feed_plan_get(feed, i, &plan))
            continue;
        for (uint32_t r = 0; r < plan.ranks && r < FEED_RANKS; r++)
            if (plan.asking[r].asked == asked) {
                plan.asking[r].watcher = watcher;
                found = true;
            }
        if (found)
            feed_plan_put(feed, i, &plan);
    }
}

/* The first plan starts the feeder. The reply waits until the feeder watches, so that all of the loader's reads are
 * seen; after WATCHER_S seconds it waits no longer. */
static void await_watcher(struct control *control, uint64_t asked)
{
    struct feed *feed = control->config.feed;
    uint32_t watcher = 0;
    if (find_watcher(feed))
        return;
    while (!watcher && !atomic_load(&feed->off) &&
           clock_now() < atomic_load(&control->feed_began) + WATCHER_S * SECOND) {
        clock_sleep(MILLISECOND);
        watcher = find_watcher(feed);
    }
    if (!watcher)
        return;
    LOCK_SCOPE(&control->feed_lock);
    set_watcher(feed, asked, watcher);
}

void feed_table_ask(struct control *control, const struct feed_wish *wish)
{
    CLEANUP_STR struct str pairs = STR_INIT;
    struct feed *feed = control->config.feed;
    uint64_t never = 0;
    if (!feed || control->config.mount->feed == 0)
        return;
    write_pairs(&pairs, wish, NULL);
    if (pairs.length > NAME_MOST && wish->wanted->nodes) {
        struct digest digest;
        str_clear(&pairs);
        if (node_texts_keep(&control->node_texts, wish->wanted->nodes, &digest))
            return;
        write_pairs(&pairs, wish, &digest);
    }
    if (pairs.failed)
        return;
    if (pairs.length > NAME_MOST) {
        log_limited(LOG_LEVEL_WARNING, 1, "epoch %" PRIu64 " is not read ahead: the keys of its plan are too long",
                    wish->wanted->epoch);
        return;
    }
    atomic_compare_exchange_strong(&control->feed_began, &never, clock_now());
    pthread_mutex_lock(&control->feed_lock);
    uint64_t asked = write_plan(feed, wish, &pairs);
    pthread_mutex_unlock(&control->feed_lock);
    if (asked && !wish->guess)
        await_watcher(control, asked);
}

/* --- where a list is, and its end --- */

static bool is_meant(const struct feed_plan *plan, uint32_t i, const struct feed_end *end)
{
    const struct feed_asking *asking = &plan->asking[i];
    return plan->epoch == end->epoch && plan->rank[i] == end->rank && asking->asked && !asking->ended &&
           (!end->digest || memcmp(end->digest->byte, plan->digest, sizeof plan->digest) == 0);
}

/* The list that was requested last. -ENOENT; -EEXIST: there are lists of several plans. */
static int find_list(struct feed *feed, struct feed_end *end, struct feed_plan *plan, uint32_t *rank)
{
    struct feed_plan other;
    bool several = false;
    end->asked = 0;
    for (unsigned slot = 0; slot < FEED_PLANS; slot++) {
        if (!feed_plan_get(feed, slot, &other) || other.number == 0)
            continue;
        for (uint32_t i = 0; i < other.ranks && i < FEED_RANKS; i++) {
            bool meant = is_meant(&other, i, end);
            several |= meant && end->asked && memcmp(plan->digest, other.digest, sizeof plan->digest) != 0;
            if (meant && other.asking[i].asked > end->asked) {
                *plan = other;
                *rank = i;
                end->slot = slot;
                end->number = other.number;
                end->asked = other.asking[i].asked;
            }
        }
    }
    return several ? -EEXIST : end->asked ? 0 : -ENOENT;
}

int feed_table_end(struct control *control, struct feed_end *end)
{
    struct feed *feed = control->config.feed;
    struct feed_plan plan;
    uint32_t rank = 0;
    LOCK_SCOPE(&control->feed_lock);
    int error = feed ? find_list(feed, end, &plan, &rank) : -ENOENT;
    if (error)
        return error;
    end->ended = atomic_fetch_add(&feed->numbers, 1) + 1;
    plan.asking[rank].ended = end->ended;
    plan.asking[rank].until = clock_now();
    plan.asking[rank].stopped = end->stopped;
    feed_plan_put(feed, end->slot, &plan);
    return 0;
}

int feed_table_told(struct control *control, struct feed_end *at, uint64_t read)
{
    struct feed *feed = control->config.feed;
    struct feed_plan plan;
    uint32_t rank = 0;
    LOCK_SCOPE(&control->feed_lock);
    int error = feed ? find_list(feed, at, &plan, &rank) : -ENOENT;
    if (error)
        return error;
    atomic_store(&feed->told[at->slot][rank], read + 1);
    return 0;
}
