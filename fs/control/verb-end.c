/* `at`: a loader of records reports how many of its list it has read. The server can see this only for streams. `end`:
 * a loader has read its list of an epoch, or leaves it. The reply is the final report about the list; later reads count
 * for other lists. */
#include "fs/control/control-private.h"
#include "fs/control/epoch-coverage.h"
#include "fs/control/feed-table.h"
#include "fs/control/feed-view.h"
#include "fs/control/verbs.h"

#include "fs/base/clock.h"
#include "fs/base/size.h"

#include <errno.h>
#include <inttypes.h>

enum { EPOCH, RANK, DIGEST, POSITION, STOPPED };
static const struct key keys[] = {
    [EPOCH] = {.name = "epoch", .value = "E", .required = true},
    [RANK] = {.name = "rank", .value = "R", .required = true},
    [DIGEST] = {.name = "digest", .value = "DIGEST"},
    [POSITION] = {.name = "position", .value = "SAMPLES"},
    [STOPPED] = {.name = "stopped", .choices = "no|yes"},
    {0},
};

static const struct key at_keys[] = {
    [EPOCH] = {.name = "epoch", .value = "E", .required = true},
    [RANK] = {.name = "rank", .value = "R", .required = true},
    [DIGEST] = {.name = "digest", .value = "DIGEST"},
    [POSITION] = {.name = "position", .value = "SAMPLES", .required = true},
    {0},
};

static int refuse_number(const char *key, struct str *why)
{
    return str_fail(why, -EINVAL, "`%s` must be a whole number", key);
}

static int parse_end(const struct key_value *value, const struct asker *asker, struct feed_end *end,
                     struct digest *digest)
{
    struct str *why = asker->why;
    uint64_t rank;
    if (number_parse(value[EPOCH].text, 0, UINT64_MAX, &end->epoch))
        return refuse_number("epoch", why);
    if (number_parse(value[RANK].text, 0, UINT32_MAX - 1, &rank))
        return refuse_number("rank", why);
    if (value[DIGEST].text && digest_parse(value[DIGEST].text, digest))
        return str_fail(why, -EINVAL, "`digest` must be the digest of a plan: 32 hexadecimal digits");
    if (value[POSITION].text && number_parse(value[POSITION].text, 0, UINT32_MAX, &end->told))
        return refuse_number("position", why);
    if (asker->charge && asker->charge->other)
        return str_fail(why, -EPERM, "only the mount's owner may report a list's position or its end");
    end->told += value[POSITION].text != NULL;
    end->digest = value[DIGEST].text ? digest : NULL;
    end->rank = (uint32_t)rank;
    return 0;
}

/* Wait, up to a second, until the feeder has processed all events from before the request. */
static void await_report(const struct control *control, const struct feed_end *end, const struct asker *asker)
{
    const struct feed *feed = control->config.feed;
    uint64_t give_up = clock_now() + FEED_END_MS * MILLISECOND;
    while (clock_now() < give_up && !asker_gave_up(asker) && atomic_load(&feed->feeder) &&
           !atomic_load(&feed->paused)) {
        const struct feed_rank *r = feed_view_rank(feed, end->slot, end->number, end->rank);
        if (r && atomic_load(&r->closed) >= end->ended)
            return;
        clock_sleep(MILLISECOND);
    }
}

static int refuse_list(const struct feed_end *end, int error, struct str *why)
{
    if (error == -EEXIST)
        return str_fail(why, -EINVAL,
                        "several plans have a list of epoch %" PRIu64 ", rank %" PRIu32
                        " in progress: add digest=, the digest of the plan",
                        end->epoch, end->rank);
    return str_fail(why, error,
                    "there is no list of epoch %" PRIu64 ", rank %" PRIu32
                    " in progress: request the plan with feed=yes, or read "
                    "its stream",
                    end->epoch, end->rank);
}

/* A list of records: one that is fed, else one that is read as streams. */
static int tell_position(struct control *control, struct feed_end *at)
{
    int error = feed_table_told(control, at, at->told - 1);
    return error == -ENOENT ? epoch_coverage_told(control, at, at->told - 1) : error;
}

static int at_run(struct control *control, const struct request *request, const struct asker *asker)
{
    struct feed_end at = {0};
    struct digest digest;
    int error = parse_end(request->value, asker, &at, &digest);
    if (error)
        return error;
    error = tell_position(control, &at);
    if (error)
        return refuse_list(&at, error, asker->why);
    str_addf(asker->reply, "%" PRIu64 "\n", at.told - 1);
    return 0;
}

static int end_run(struct control *control, const struct request *request, const struct asker *asker)
{
    struct feed_end end = {0};
    struct digest digest;
    int error = parse_end(request->value, asker, &end, &digest);
    if (error)
        return error;
    end.stopped = request->value[STOPPED].choice == 1;
    if (end.told)
        tell_position(control, &end);
    error = feed_table_end(control, &end);
    if (!error)
        await_report(control, &end, asker);
    else if (error == -ENOENT)
        error = epoch_coverage_end(control, &end);
    if (error)
        return refuse_list(&end, error, asker->why);
    return feed_view_add_report(control, &end, asker->reply);
}

const struct verb verb_at = {
    .name = "at",
    .about = "report the number of samples that a loader of records has read; reply: that number",
    .keys = at_keys,
    .run = at_run,
};

const struct verb verb_end = {
    .name = "end",
    .about = "report that a list was read, which is fed or a stream; reply: its report, as in `epochs`",
    .keys = keys,
    .run = end_run,
};
