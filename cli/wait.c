/* `dealfs wait`: waits until a mount is live, and the requested number of nodes has joined. */
#include "cli/base/command.h"

#include "cli/live/client.h"
#include "cli/live/figures.h"
#include "cli/live/live.h"
#include "fs/base/clock.h"
#include "fs/base/json.h"
#include "fs/base/size.h"

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
    struct live live = {0};
    CLEANUP_STR struct str status = STR_INIT;
    int error = live_find(wanted->mountpoint, &live, why);
    if (error)
        return error;
    error = -EAGAIN;
    if (!live.control || live.health == LIVE_HUNG || live.health == LIVE_DEAD) {
        str_addf(why, "%s: %s", wanted->mountpoint, live_health_text(live.health));
    } else if (client_file(&live, "status", &status) < 0) {
        str_addf(why, "%s: its status cannot be read yet", wanted->mountpoint);
    } else {
        error = look_at_status(wanted, &status, why);
    }
    live_fini(&live);
    return error;
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
    static const struct option options[] = {
        {"nodes", required_argument, NULL, 'n'}, {"timeout", required_argument, NULL, 't'}, {0}};
    struct wait_wish wanted = {.nodes = 1, .timeout = FOREVER};
    int option;
    while ((option = getopt_long(argc, argv, ":n:t:", options, NULL)) != -1) {
        if (option == '?' || option == ':')
            return command_bad_option(&command_wait, option, argv);
        if (option == 'n' && number_parse(optarg, 1, UINT32_MAX, &wanted.nodes) < 0)
            return command_usage(&command_wait, "--nodes %s: not a number of nodes", optarg);
        if (option == 't' && duration_parse(optarg, &wanted.timeout) < 0)
            return command_usage(&command_wait, "--timeout %s: not a time", optarg);
    }
    if (argc - optind != 1)
        return command_usage(&command_wait, "one MOUNTPOINT is needed");
    wanted.mountpoint = argv[optind];
    return wait_for(&wanted);
}

const struct command command_wait = {
    .name = "wait",
    .arguments = "[--nodes N] [--timeout TIME] MOUNTPOINT",
    .summary = "wait until a mount is live",
    .help = "  --nodes N        wait until N nodes have joined (1)\n"
            "  --timeout TIME   fail after TIME: 30 (seconds), 5m, 1h (unlimited)\n",
    .run = wait_command,
};
