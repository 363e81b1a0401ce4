/* `dealfs stage`: fills the shards of a mount and its world from the source now, and shows the progress. */
#include "cli/base/options.h"

#include "cli/base/interrupt.h"
#include "cli/base/progress.h"
#include "cli/live/client.h"
#include "cli/live/figures.h"
#include "fs/base/clock.h"
#include "fs/base/size.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

enum { FIRST_LOOK_MS = 5, LAST_LOOK_MS = 100 };

struct stage_view {
    struct live live;
    char *under;
    const char *match, *samples;
    struct str plan;   /* as given */
    struct str choice; /* the keys that choose files, each preceded by a blank */
    bool stop;
    struct str reply; /* the last one: state (idle, running, done, stopped, failed) and figures */
    uint64_t elapsed; /* nanoseconds, until the last node was done */
};

static bool has_state(const struct stage_view *stage, const char *state)
{
    return figures_is(&stage->reply, "state", state);
}

static int stage_request(struct stage_view *stage, const char *action, struct str *why)
{
    CLEANUP_STR struct str line = STR_INIT;
    bool start = strcmp(action, "start") == 0;
    str_addf(&line, "stage action=%s%s\n", action, start && stage->choice.length ? stage->choice.data : "");
    str_clear(&stage->reply);
    int error = client_send(&stage->live, &line, &stage->reply, why);
    uint64_t elapsed = figures_number(&stage->reply, "elapsed");
    if (elapsed > stage->elapsed) /* this node's own, when all are done */
        stage->elapsed = elapsed;
    return error;
}

/* Wait a sixteenth of the time so far, so that a short stage is noticed soon. */
static uint64_t look_after(const struct stage_view *stage)
{
    uint64_t first = FIRST_LOOK_MS * MILLISECOND, last = LAST_LOOK_MS * MILLISECOND, after = stage->elapsed / 16;
    return after < first ? first : after > last ? last : after;
}

/* Until staging has ended, or Ctrl-C, which may also have hit the child that was asking. */
static int stage_follow(struct stage_view *stage, struct str *why)
{
    struct progress_bar progress;
    int error = 0;
    progress_begin(&progress, "staging", stderr);
    while (!error && !interrupted && has_state(stage, "running")) {
        const struct progress_now now = {.files = figures_number(&stage->reply, "files"),
                                         .files_total = figures_number(&stage->reply, "files_total"),
                                         .bytes = figures_number(&stage->reply, "bytes"),
                                         .bytes_total = figures_number(&stage->reply, "bytes_total")};
        progress_show(&progress, &now);
        clock_sleep(look_after(stage));
        error = stage_request(stage, "look", why);
    }
    progress_end(&progress);
    return error;
}

/* What all nodes of the world have cached, and what has no owner. */
static void print_world(const struct stage_view *stage, const struct str *status)
{
    struct figures_list list = figures_list_of(status, "world");
    struct str node;
    uint64_t held = 0, capacity = 0, nodes = 0;
    while (figures_next(&list, &node)) {
        held += figures_number(&node, "held");
        capacity += figures_number(&node, "capacity");
        nodes++;
    }
    printf("  %" PRIu64 " nodes hold %s of %s\n", nodes, size_text(held), size_text(capacity));
    uint64_t all = figures_number(status, "groups") * figures_number(status, "catalog.bytes");
    uint64_t owned = figures_number(&stage->reply, "bytes_total");
    if (nodes == figures_number(&stage->reply, "nodes") && all > owned && !figures_number(&stage->reply, "chosen"))
        printf("  %s have no owner, because no node has room, and will be read from the source\n",
               size_text(all - owned));
}

static void print_tiers(const struct stage_view *stage)
{
    CLEANUP_STR struct str status = STR_INIT;
    if (client_file(&stage->live, "status", &status) < 0)
        return;
    if (figures_number(&stage->reply, "nodes") > 1) {
        print_world(stage, &status);
        return;
    }
    for (int i = 0; i < 2; i++) {
        const char *tier = figures_places[i];
        if (figures_number(&status, "%s.capacity", tier))
            figures_print(&status, "  %s    {%s.held size} of {%s.capacity size}\n", tier, tier, tier);
    }
}

static void print_summary(const struct stage_view *stage)
{
    uint64_t bytes = figures_number(&stage->reply, "bytes"), kept = figures_number(&stage->reply, "kept");
    double seconds = (double)stage->elapsed / 1e9;
    figures_print(&stage->reply, "{files count} of {files_total count} files checked, {kept size} cached, in %s",
                  duration_text(stage->elapsed));
    if (seconds > 0)
        printf(" (%s/s)", size_text((uint64_t)((double)bytes / seconds)));
    printf("\n");
    print_tiers(stage);
    if (bytes > kept)
        printf("  %s had no room and will be read from the source\n", size_text(bytes - kept));
}

static int stage_finish(struct stage_view *stage)
{
    CLEANUP_STR struct str why = STR_INIT;
    const char *mountpoint = stage->live.mountpoint;
    if (interrupted && stage_request(stage, "stop", &why) < 0)
        return command_fail("stop staging %s: %s", mountpoint, command_why(&why, 0));
    print_summary(stage);
    if (interrupted || has_state(stage, "stopped") || has_state(stage, "idle"))
        return command_fail("staging of %s was stopped; `dealfs stage %s`%s resumes it", mountpoint, mountpoint,
                            figures_number(&stage->reply, "chosen") ? " with the same options" : "");
    if (figures_number(&stage->reply, "failed") > 0) {
        figures_add(&why, &stage->reply, "{failed} files could not be staged, the first because of: {error text}");
        return command_fail("%s (see `dealfs status %s`)", command_why(&why, 0), mountpoint);
    }
    figures_add(&why, &stage->reply, "{state text}: {error text}");
    return has_state(stage, "done") ? COMMAND_DONE
                                    : command_fail("staging of %s ended as %s", mountpoint, command_why(&why, 0));
}

static int stage_live(struct stage_view *stage)
{
    CLEANUP_STR struct str why = STR_INIT;
    interrupt_catch(SIGINT, SIGTERM);
    int error = stage_request(stage, stage->stop ? "stop" : "start", &why);
    if (!error && stage->stop)
        return COMMAND_DONE;
    if (!error)
        error = stage_follow(stage, &why);
    if (error && !interrupted)
        return command_fail("stage %s: %s", stage->live.mountpoint, command_why(&why, error));
    return stage_finish(stage);
}

/* --- chosen files --- */

static void add_choice(struct str *choice, const char *key, const char *value)
{
    if (!value)
        return;
    str_addf(choice, " %s=", key);
    str_add_percent(choice, value, strlen(value));
}

/* The value of `plan` has the format of plan file names: pairs separated by commas. */
static int parse_options(int argc, char **argv, struct stage_view *stage)
{
    int status = command_options(&command_stage, stage, argc, argv);
    if (!status && stage->plan.length && !strchr(stage->plan.data, '='))
        status = command_usage(&command_stage, "--plan %s: not of the form KEY=VALUE,...", stage->plan.data);
    if (!status && argc - optind != 1)
        status = command_usage(&command_stage, "one MOUNTPOINT is needed");
    if (status)
        return status;
    add_choice(&stage->choice, "under", stage->under ? client_path_under(stage->under, argv[optind]) : NULL);
    add_choice(&stage->choice, "match", stage->match);
    add_choice(&stage->choice, "samples", stage->samples);
    add_choice(&stage->choice, "plan", stage->plan.length ? stage->plan.data : NULL);
    return stage->plan.failed || stage->choice.failed ? command_fail("stage: out of memory") : COMMAND_DONE;
}

static int stage_command(int argc, char **argv)
{
    struct stage_view stage = {0};
    int status = parse_options(argc, argv, &stage);
    if (!status && client_find(argv[optind], LIVE_HUNG, &stage.live))
        status = COMMAND_FAILED;
    if (!status)
        status = stage_live(&stage);
    live_fini(&stage.live);
    str_fini(&stage.plan);
    str_fini(&stage.choice);
    str_fini(&stage.reply);
    return status;
}

#define AT(member) .place = offsetof(struct stage_view, member)
static const struct command_option stage_options[] = {
    {"under", 0, OPTION_TEXT, "DIR", "only files below this directory of the mount; default: all files", AT(under)},
    {"match", 0, OPTION_TEXT, "GLOB", "only files whose name (with a slash in GLOB: whose path) matches", AT(match)},
    {"samples", 0, OPTION_TEXT, "LIST", "only files of this sample list, in its order; default: all", AT(samples)},
    {"plan", 0, OPTION_LIST, "KEY=VALUE,...", "the files of this plan, in the order of its steps", AT(plan)},
    {"stop", 0, OPTION_FLAG, NULL, "stop staging on all nodes of the world", AT(stop)},
    {0},
};

const struct command command_stage = {
    .name = "stage",
    .arguments = "[OPTIONS] MOUNTPOINT",
    .summary = "fill the shards of a mount, and of its world, from the source now",
    .options = stage_options,
    .help =
        "With --plan, training can start meanwhile. It needs epoch=, ranks= and batch= at least: see dealfs-plan(1).\n",
    .run = stage_command,
};
