/* `dealfs wait`: waits until a mount is live, and the requested number of nodes has joined. */
#include "cli/base/options.h"

#include "cli/live/client.h"
#include "cli/live/figures.h"
#include "cli/live/live.h"
#include "fs/base/clock.h"
#include "fs/base/json.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdint.h>

static const uint64_t FOREVER = UINT64_MAX;
enum { PAUSE_FIRST_MS = 20, PAUSE_LAST_MS = 1000 };

struct wait_wish {
    const char *mountpoint;
    uint64_t nodes;
    uint64_t timeout; /* nanoseconds */
};

/* Can it answer reads, and does its world have the requested number of nodes? 0; else `why`. */
static int look_at_status(const struct wait_wish *wanted, const struct str *status, struct str *why)
{
    uint64_t nodes = figures_is(status, "state", "joined") ? figures_number(status, "nodes") : 1;
    const char *value;
    if (json_find(status->data, status->length, "catalog", &value) < 0)
        return str_fail(why, -EAGAIN, "%s: it waits for its first world", wanted->mountpoint);
    if (nodes < wanted->nodes)
        str_addf(why, "%s: %" PRIu64 " of %" PRIu64 " nodes have joined", wanted->mountpoint, nodes, wanted->nodes);
    return nodes < wanted->nodes ? -EAGAIN : 0;
}

/* 0 if so; else `why` says what is missing. */
static int look_at_mount(const struct wait_wish *wanted, struct str *why)
{
    CLEANUP_LIVE struct live live = {0};
    CLEANUP_STR struct str status = STR_INIT;
    int error = live_find(wanted->mountpoint, &live, why);
    if (error)
        return error;
    if (!live.control || live.health == LIVE_HUNG || live.health == LIVE_DEAD)
        return str_fail(why, -EAGAIN, "%s: %s", wanted->mountpoint, live_health_text(live.health));
    if (client_file(&live, "status", &status) < 0)
        return str_fail(why, -EAGAIN, "%s: its status cannot be read yet", wanted->mountpoint);
    return look_at_status(wanted, &status, why);
}

static void pause_before(uint64_t deadline, unsigned *ms)
{
    uint64_t now = clock_now(), pause = *ms * MILLISECOND;
    if (pause > deadline - now)
        pause = deadline - now;
    clock_sleep(pause);
    *ms = *ms * 2 < PAUSE_LAST_MS ? *ms * 2 : PAUSE_LAST_MS;
}

static int wait_for(const struct wait_wish *wanted)
{
    uint64_t now = clock_now(), deadline = wanted->timeout < FOREVER - now ? now + wanted->timeout : FOREVER;
    CLEANUP_STR struct str why = STR_INIT;
    unsigned ms = PAUSE_FIRST_MS;
    while (look_at_mount(wanted, &why) != 0) {
        if (clock_now() >= deadline)
            return command_fail("not live in time: %s", command_why(&why, 0));
        str_clear(&why);
        pause_before(deadline, &ms);
    }
    return COMMAND_DONE;
}

static int wait_command(int argc, char **argv)
{
    struct wait_wish wanted = {.nodes = 1, .timeout = FOREVER};
    int status = command_options(&command_wait, &wanted, argc, argv);
    if (status)
        return status;
    if (argc - optind != 1)
        return command_usage(&command_wait, "one MOUNTPOINT is needed");
    wanted.mountpoint = argv[optind];
    return wait_for(&wanted);
}

#define AT(member) .place = offsetof(struct wait_wish, member)
static const struct command_option wait_options[] = {
    {"nodes", 0, OPTION_NUMBER, "N", "wait until N nodes have joined (1)", AT(nodes), .most = UINT32_MAX},
    {"timeout", 0, OPTION_TIME, "TIME", "fail after TIME: 30 (seconds), 5m, 1h (unlimited)", AT(timeout)},
    {0},
};

const struct command command_wait = {
    .name = "wait",
    .arguments = "[--nodes N] [--timeout TIME] MOUNTPOINT",
    .summary = "wait until a mount is live",
    .options = wait_options,
    .run = wait_command,
};
