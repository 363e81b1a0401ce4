/* `dealfs exchange` and `dealfs shuffle`: have samples change their node, and wait until they have, where it is wished.
 *
 * The request's reply comes when all nodes have the new layout. The bytes follow, by the servers' work and not by this
 * command's; how far they are stands in `status`. */
#include "cli/base/command.h"

#include "cli/base/interrupt.h"
#include "cli/base/progress.h"
#include "cli/live/client.h"
#include "fs/base/clock.h"
#include "fs/base/json.h"
#include "fs/base/size.h"
#include "fs/plan/exchange-request.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

enum { LOOK_MS = 200 };

struct shuffle {
    const struct command *command;
    struct live live;
    struct str line; /* the request */
    uint64_t nodes, turn, samples, bytes;
    bool counted; /* samples and bytes are known */
};

/* As `status` has it. */
struct move_look {
    uint64_t turn;
    char state[16];
    struct progress_now now;
    uint64_t refused_samples, refused_bytes, rewritten, elapsed;
};

static void print_turn(const struct shuffle *x, const struct str *reply)
{
    CLEANUP_STR struct str found = STR_INIT, layout = STR_INIT;
    char samples[COUNT_TEXT], bytes[SIZE_TEXT];

    if (x->nodes < 2) {
        printf("this node is alone: nothing moves\n");
        return;
    }
    json_find_string(reply->data, reply->length, "layout", &found);
    str_add_printable(&layout, found.data ? found.data : "", found.length);
    printf("turn %" PRIu64 ", layout %s", x->turn, layout.length && !layout.failed ? layout.data : "-");
    if (x->counted)
        printf(": %s samples, %s, change their node", count_format(x->samples, samples, sizeof samples),
               size_format(x->bytes, bytes, sizeof bytes));
    printf("\n");
    fflush(stdout);
}

static int shuffle_ask(struct shuffle *x)
{
    CLEANUP_STR struct str reply = STR_INIT, why = STR_INIT;
    int error = client_wait(&x->live, x->line.data, x->line.length, &reply, &why);

    if (error == -EINTR)
        return command_fail("%s %s: nobody waits for it any more; the layout may still change", x->command->name,
                            x->live.mountpoint);
    if (error)
        return command_fail("%s %s: %s", x->command->name, x->live.mountpoint, command_why(&why, error));
    x->nodes = client_number(&reply, "nodes");
    x->turn = client_number(&reply, "turn");
    x->bytes = client_number(&reply, "bytes");
    x->counted = json_find_uint(reply.data, reply.length, "samples", &x->samples) == 0;
    print_turn(x, &reply);
    return COMMAND_DONE;
}

/* ---- waiting for the bytes ---- */

static int look_at_move(const struct shuffle *x, struct move_look *look)
{
    CLEANUP_STR struct str status = STR_INIT, state = STR_INIT;
    int error = client_file(&x->live, "status", &status);

    if (error)
        return error;
    *look = (struct move_look){
        .turn = client_number(&status, "turn.number"),
        .now = {.files = client_number(&status, "move.come_samples"),
                .files_total = client_number(&status, "move.samples"),
                .bytes = client_number(&status, "move.come_bytes"),
                .bytes_total = client_number(&status, "move.bytes")},
        .refused_samples = client_number(&status, "move.refused_samples"),
        .refused_bytes = client_number(&status, "move.refused_bytes"),
        .rewritten = client_number(&status, "move.rewritten_bytes"),
        .elapsed = client_number(&status, "move.elapsed"),
    };
    json_find_string(status.data, status.length, "move.state", &state);
    snprintf(look->state, sizeof look->state, "%s", state.failed || !state.length ? "" : state.data);
    return 0;
}

/* A later turn begins when all have done the move of the one before. */
static bool is_over(const struct shuffle *x, const struct move_look *look)
{
    return look->turn > x->turn || (look->turn == x->turn && strcmp(look->state, "moving") != 0);
}

static int shuffle_follow(const struct shuffle *x, struct move_look *look)
{
    struct progress_bar progress;
    int error = 0;

    progress_begin(&progress, "moving", stderr);
    for (;;) {
        error = look_at_move(x, look);
        if (error || interrupted || is_over(x, look))
            break;
        progress_show(&progress, &look->now);
        clock_sleep(LOOK_MS * MILLISECOND);
    }
    progress_end(&progress);
    return error;
}

static void print_moved(const struct move_look *look)
{
    char samples[COUNT_TEXT], bytes[SIZE_TEXT], rate[SIZE_TEXT];
    double seconds = (double)look->elapsed / 1e9;

    printf("%s samples, %s, came to their new nodes in %.2f s", count_format(look->now.files, samples, sizeof samples),
           size_format(look->now.bytes, bytes, sizeof bytes), seconds);
    if (seconds > 0)
        printf(" (%s/s)", size_format((uint64_t)((double)look->now.bytes / seconds), rate, sizeof rate));
    printf("\n");
    if (look->refused_samples > 0)
        printf("  %s samples, %s, found no room there and stay where they were\n",
               count_format(look->refused_samples, samples, sizeof samples),
               size_format(look->refused_bytes, bytes, sizeof bytes));
    if (look->now.bytes > 0)
        printf("  write amplification %.2f: %s of what stayed was rewritten, to get the room of what left back\n",
               1 + (double)look->rewritten / (double)look->now.bytes,
               size_format(look->rewritten, bytes, sizeof bytes));
}

static int shuffle_wait(const struct shuffle *x)
{
    const char *mountpoint = x->live.mountpoint;
    struct move_look look = {0};
    int error = shuffle_follow(x, &look);

    if (interrupted && (error || !is_over(x, &look)))
        return command_fail("the samples go on moving; `dealfs status %s` shows how far they are", mountpoint);
    if (error)
        return command_fail("look at %s: %s; the samples go on moving", mountpoint, strerror(-error));
    if (look.turn > x->turn) {
        printf("everything has moved; turn %" PRIu64 " has followed\n", look.turn);
        return COMMAND_DONE;
    }
    print_moved(&look);
    if (strcmp(look.state, "ended") == 0)
        return command_fail("%s: nodes were lost, so the move has ended; the next `dealfs join` sees who holds what",
                            mountpoint);
    return COMMAND_DONE;
}

/* ---- words ---- */

static int make_line(struct shuffle *x, int count, char **words)
{
    str_adds(&x->line, x->command->name);
    for (int i = 0; i < count; i++)
        if (!client_add_pair(&x->line, words[i]))
            return command_usage(x->command, "%s: not of the form KEY=VALUE", words[i]);
    str_adds(&x->line, "\n");
    return x->line.failed ? command_fail("%s: out of memory", x->command->name) : COMMAND_DONE;
}

static int shuffle_live(struct shuffle *x, bool wait)
{
    interrupt_catch(SIGINT);
    interrupt_catch(SIGTERM);
    int status = shuffle_ask(x);
    return status || !wait || x->nodes < 2 ? status : shuffle_wait(x);
}

static int shuffle_with(const struct command *command, int argc, char **argv)
{
    static const struct option options[] = {{"wait", no_argument, NULL, 'w'}, {0}};
    struct shuffle x = {.command = command, .line = STR_INIT};
    bool wait = false;
    int option;

    while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (option != 'w')
            return command_bad_option(command, option, argv);
        wait = true;
    }
    if (argc - optind < 2)
        return command_usage(command, "a MOUNTPOINT and KEY=VALUE words are needed");
    int status = make_line(&x, argc - optind - 1, argv + optind + 1);
    if (!status && (client_find(argv[optind], LIVE_ELSEWHERE, &x.live) || client_become(&x.live)))
        status = COMMAND_FAILED;
    else if (!status) {
        status = shuffle_live(&x, wait);
        live_fini(&x.live);
    }
    str_fini(&x.line);
    return status;
}

static int exchange_command(int argc, char **argv)
{
    return shuffle_with(&command_exchange, argc, argv);
}

static int shuffle_command(int argc, char **argv)
{
    return shuffle_with(&command_shuffle, argc, argv);
}

#define WAIT_HELP "  --wait                            until everything has moved, with a bar\n"

const struct command command_exchange = {
    .name = "exchange",
    .arguments = "[--wait] MOUNTPOINT epoch=E fraction=Q [seed=S]",
    .summary = "have a part of each node's samples change its node",
    .help = WAIT_HELP,
    .keys = exchange_keys,
    .run = exchange_command,
};

const struct command command_shuffle = {
    .name = "shuffle",
    .arguments = "[--wait] MOUNTPOINT seed=S",
    .summary = "have all samples change their node",
    .help = WAIT_HELP,
    .keys = shuffle_keys,
    .run = shuffle_command,
};
