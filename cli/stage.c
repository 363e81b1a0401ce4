/* `dealfs stage`: fill the shards of a mount, and of its whole world, from the source now, and show how it goes. */
#include "cli/command.h"

#include "cli/live.h"
#include "cli/progress.h"
#include "cli/request.h"
#include "fs/base/json.h"
#include "fs/base/size.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <time.h>

enum { LOOK_MS = 100 };

struct stage {
    struct live live;
    struct progress_now now;
    uint64_t kept, failed;
    uint64_t elapsed; /* nanoseconds, until the last node was done */
    uint64_t nodes;   /* that take part */
    char state[16];   /* idle, running, done, stopped, failed */
    char error[128];
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    interrupted = signal;
}

static void parse(struct stage *stage, const struct str *reply)
{
    static const struct {
        const char *key;
        size_t offset;
    } numbers[] = {
        {"files", offsetof(struct stage, now.files)}, {"files_total", offsetof(struct stage, now.files_total)},
        {"bytes", offsetof(struct stage, now.bytes)}, {"bytes_total", offsetof(struct stage, now.bytes_total)},
        {"kept", offsetof(struct stage, kept)},       {"failed", offsetof(struct stage, failed)},
        {"nodes", offsetof(struct stage, nodes)},
    };
    CLEANUP_STR struct str text = STR_INIT;
    uint64_t elapsed = 0;

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_find_uint(reply->data, reply->length, numbers[i].key,
                       (uint64_t *)(void *)((char *)stage + numbers[i].offset));
    json_find_uint(reply->data, reply->length, "elapsed", &elapsed);
    if (elapsed > stage->elapsed) /* this node's own, when all are done */
        stage->elapsed = elapsed;
    if (json_find_string(reply->data, reply->length, "state", &text) == 0 && !text.failed)
        snprintf(stage->state, sizeof stage->state, "%s", text.data);
    str_clear(&text);
    if (json_find_string(reply->data, reply->length, "error", &text) == 0 && !text.failed)
        snprintf(stage->error, sizeof stage->error, "%s", text.data);
}

static int request(struct stage *stage, const char *action, struct str *why)
{
    CLEANUP_STR struct str line = STR_INIT, reply = STR_INIT;

    str_addf(&line, "stage action=%s\n", action);
    if (line.failed)
        return -ENOMEM;
    int error = request_send(stage->live.control, line.data, line.length, &reply, why);
    if (!error)
        parse(stage, &reply);
    return error;
}

static void pause_looking(void)
{
    struct timespec time = {0, LOOK_MS * 1000000L};

    nanosleep(&time, NULL);
}

/* Until staging has ended or Ctrl-C, which may also have hit the child that was asking. */
static int follow(struct stage *stage, struct str *why)
{
    struct progress progress;
    int error = 0;

    progress_begin(&progress, "staging", stderr);
    while (!error && !interrupted && strcmp(stage->state, "running") == 0) {
        progress_show(&progress, &stage->now);
        pause_looking();
        error = request(stage, "look", why);
    }
    progress_end(&progress);
    return interrupted ? 0 : error;
}

static void print_tier(const struct str *status, const char *tier)
{
    char key[32], held_text[SIZE_TEXT], capacity_text[SIZE_TEXT];
    uint64_t held = 0, capacity = 0;

    snprintf(key, sizeof key, "%s.held", tier);
    json_find_uint(status->data, status->length, key, &held);
    snprintf(key, sizeof key, "%s.capacity", tier);
    json_find_uint(status->data, status->length, key, &capacity);
    if (capacity > 0)
        printf("  %s    %s of %s\n", tier, size_format(held, held_text, sizeof held_text),
               size_format(capacity, capacity_text, sizeof capacity_text));
}

/* What all nodes of the world hold, and what none of them owns. */
static void print_world(const struct stage *stage, const struct str *status)
{
    const char *rest = NULL, *node;
    long n = json_find(status->data, status->length, "world", &rest);
    size_t left = n > 0 ? (size_t)n : 0;
    uint64_t held = 0, capacity = 0, nodes = 0, groups = 1, bytes = 0;
    char held_text[SIZE_TEXT], capacity_text[SIZE_TEXT];

    while (left > 0 && (n = json_next(&rest, &left, &node)) > 0) {
        uint64_t number = 0;
        held += json_find_uint(node, (size_t)n, "held", &number) == 0 ? number : 0;
        capacity += json_find_uint(node, (size_t)n, "capacity", &number) == 0 ? number : 0;
        nodes++;
    }
    printf("  %" PRIu64 " nodes hold %s of %s\n", nodes, size_format(held, held_text, sizeof held_text),
           size_format(capacity, capacity_text, sizeof capacity_text));
    json_find_uint(status->data, status->length, "groups", &groups);
    json_find_uint(status->data, status->length, "catalog.bytes", &bytes);
    if (nodes == stage->nodes && groups * bytes > stage->now.bytes_total)
        printf("  %s have no owner, for want of room, and will be read from the source\n",
               size_format(groups * bytes - stage->now.bytes_total, held_text, sizeof held_text));
}

static void print_tiers(const struct stage *stage)
{
    CLEANUP_STR struct str status = STR_INIT;

    if (request_file(stage->live.control, "status", &status) < 0)
        return;
    if (stage->nodes > 1) {
        print_world(stage, &status);
        return;
    }
    print_tier(&status, "ram");
    print_tier(&status, "ssd");
}

static void print_summary(const struct stage *stage)
{
    char files[COUNT_TEXT], total[COUNT_TEXT], bytes[SIZE_TEXT], rest[SIZE_TEXT], time[SIZE_TEXT], rate[SIZE_TEXT];
    double seconds = (double)stage->elapsed / 1e9;

    printf("%s of %s files looked at, %s kept, in %s", count_format(stage->now.files, files, sizeof files),
           count_format(stage->now.files_total, total, sizeof total), size_format(stage->kept, bytes, sizeof bytes),
           duration_format(stage->elapsed, time, sizeof time));
    if (seconds > 0)
        printf(" (%s/s)", size_format((uint64_t)((double)stage->now.bytes / seconds), rate, sizeof rate));
    printf("\n");
    print_tiers(stage);
    if (stage->now.bytes > stage->kept)
        printf("  %s had no room and will be read from the source\n",
               size_format(stage->now.bytes - stage->kept, rest, sizeof rest));
}

static int finish(struct stage *stage)
{
    const char *mountpoint = stage->live.mountpoint;

    if (interrupted) {
        CLEANUP_STR struct str why = STR_INIT;
        if (request(stage, "stop", &why) < 0)
            return command_fail("stop staging %s: %s", mountpoint, why.failed ? "out of memory" : why.data);
    }
    print_summary(stage);
    if (interrupted || strcmp(stage->state, "stopped") == 0 || strcmp(stage->state, "idle") == 0)
        return command_fail("staging of %s was stopped; `dealfs stage %s` goes on where it was", mountpoint,
                            mountpoint);
    if (stage->failed > 0)
        return command_fail("%" PRIu64 " files could not be staged, the first because of: %s (see `dealfs status %s`)",
                            stage->failed, stage->error, mountpoint);
    if (strcmp(stage->state, "done") != 0)
        return command_fail("staging of %s ended as %s: %s", mountpoint, stage->state, stage->error);
    return COMMAND_DONE;
}

static int stage_mount(struct stage *stage, const char *mountpoint)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct sigaction action = {.sa_handler = interrupt};

    if (live_find(mountpoint, &stage->live, &why) < 0)
        return command_fail("%s", why.failed ? "out of memory" : why.data);
    if (!stage->live.control)
        return command_fail("%s: %s", mountpoint, live_health_text(stage->live.health));
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    int error = request(stage, "start", &why);
    if (!error)
        error = follow(stage, &why);
    else if (interrupted)
        error = 0;
    if (error)
        return command_fail("stage %s: %s", mountpoint, why.length > 0 ? why.data : strerror(-error));
    return finish(stage);
}

static int run(int argc, char **argv)
{
    struct stage stage = {0};

    if (argc != 2 || argv[1][0] == '-')
        return command_usage(&command_stage, "one MOUNTPOINT is needed, and no option");
    int status = stage_mount(&stage, argv[1]);
    live_fini(&stage.live);
    return status;
}

const struct command command_stage = {
    .name = "stage",
    .arguments = "MOUNTPOINT",
    .summary = "fill the shards of a mount, and of its world, from the source now",
    .help = "",
    .run = run,
};
