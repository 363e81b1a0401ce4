/* `dealfs exchange` and `dealfs shuffle`: move samples to other nodes and, if requested, wait until they have arrived.
 *
 * The request's reply comes when all nodes have the new layout. The servers then move the bytes, independently of this
 * command; `status` has the progress. */
#include "cli/base/options.h"

#include "cli/base/interrupt.h"
#include "cli/base/progress.h"
#include "cli/live/client.h"
#include "cli/live/figures.h"
#include "fs/base/clock.h"
#include "fs/base/json.h"
#include "fs/base/size.h"
#include "fs/plan/exchange-request.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>

enum { LOOK_MS = 200 };

struct shuffle {
    const struct command *command;
    struct live live;
    struct str line; /* the request */
    uint64_t nodes, turn;
    struct str status; /* the last one while the samples move */
};

static void print_turn(const struct str *reply)
{
    const char *value;
    if (figures_number(reply, "nodes") < 2) {
        printf("this node is alone: nothing moves\n");
        return;
    }
    figures_print(reply, "turn {turn}, layout {layout text}");
    if (json_find(reply->data, reply->length, "samples", &value) > 0)
        figures_print(reply, ": {samples count} samples, {bytes size}, move to another node");
    printf("\n");
    fflush(stdout);
}

static int shuffle_ask(struct shuffle *x)
{
    CLEANUP_STR struct str reply = STR_INIT, why = STR_INIT;
    int error = client_wait(&x->live, &x->line, -1, &reply, &why);
    if (error == -EINTR)
        return command_fail("%s %s: interrupted; the layout may still change", x->command->name, x->live.mountpoint);
    if (error)
        return command_fail("%s %s: %s", x->command->name, x->live.mountpoint, command_why(&why, error));
    x->nodes = figures_number(&reply, "nodes");
    x->turn = figures_number(&reply, "turn");
    print_turn(&reply);
    return COMMAND_DONE;
}

/* --- waiting for the bytes --- */

static bool has_state(const struct shuffle *x, const char *state)
{
    return figures_is(&x->status, "move.state", state);
}

/* A later turn begins when all nodes have completed the previous move. */
static bool is_over(const struct shuffle *x)
{
    uint64_t turn = figures_number(&x->status, "turn.number");
    return turn > x->turn || (turn == x->turn && !has_state(x, "moving"));
}

static int shuffle_follow(struct shuffle *x)
{
    struct progress_bar progress;
    int error = 0;
    progress_begin(&progress, "moving", stderr);
    for (;;) {
        str_clear(&x->status);
        error = client_file(&x->live, "status", &x->status);
        if (error || interrupted || is_over(x))
            break;
        const struct progress_now now = {.files = figures_number(&x->status, "move.come_samples"),
                                         .files_total = figures_number(&x->status, "move.samples"),
                                         .bytes = figures_number(&x->status, "move.come_bytes"),
                                         .bytes_total = figures_number(&x->status, "move.bytes")};
        progress_show(&progress, &now);
        clock_sleep(LOOK_MS * MILLISECOND);
    }
    progress_end(&progress);
    return error;
}

static void print_moved(const struct str *status)
{
    double seconds = (double)figures_number(status, "move.elapsed") / 1e9;
    double bytes = (double)figures_number(status, "move.come_bytes");
    figures_print(status,
                  "{move.come_samples count} samples, {move.come_bytes size}, arrived at their new nodes in %.2f s",
                  seconds);
    if (seconds > 0)
        printf(" (%s/s)", size_text((uint64_t)(bytes / seconds)));
    printf("\n");
    if (figures_number(status, "move.refused_samples") > 0)
        figures_print(status, "  {move.refused_samples count} samples, {move.refused_bytes size}, found no room there "
                              "and stay at their old nodes\n");
    if (bytes > 0)
        figures_print(status,
                      "  write amplification %.2f: {move.rewritten_bytes size} of the samples that stayed were "
                      "rewritten to free the room of those that left\n",
                      1 + (double)figures_number(status, "move.rewritten_bytes") / bytes);
}

static int shuffle_wait(struct shuffle *x)
{
    const char *mountpoint = x->live.mountpoint;
    int error = shuffle_follow(x);
    if (interrupted && (error || !is_over(x)))
        return command_fail("the samples are still moving; `dealfs status %s` shows the progress", mountpoint);
    if (error)
        return command_fail("get the status of %s: %s; the samples are still moving", mountpoint, strerror(-error));
    if (figures_number(&x->status, "turn.number") > x->turn) {
        figures_print(&x->status, "everything has moved; turn {turn.number} has followed\n");
        return COMMAND_DONE;
    }
    print_moved(&x->status);
    if (has_state(x, "ended"))
        return command_fail("%s: nodes were lost, so the move has ended: run `dealfs join` again", mountpoint);
    return COMMAND_DONE;
}

/* --- options --- */

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
    interrupt_catch(SIGINT, SIGTERM);
    int status = shuffle_ask(x);
    return status || !wait || x->nodes < 2 ? status : shuffle_wait(x);
}

static int shuffle_with(const struct command *command, int argc, char **argv)
{
    struct shuffle x = {.command = command, .line = STR_INIT};
    bool wait = false;
    int status = command_options(command, &wait, argc, argv);
    if (status)
        return status;
    if (argc - optind < 2)
        return command_usage(command, "a MOUNTPOINT and KEY=VALUE words are needed");
    status = make_line(&x, argc - optind - 1, argv + optind + 1);
    if (!status && (client_find(argv[optind], LIVE_ELSEWHERE, &x.live) || client_become(&x.live)))
        status = COMMAND_FAILED;
    else if (!status)
        status = shuffle_live(&x, wait);
    live_fini(&x.live);
    str_fini(&x.line);
    str_fini(&x.status);
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

static const struct command_option shuffle_options[] = {
    {"wait", 0, OPTION_FLAG, NULL, "wait until all samples have moved; shows progress", .place = 0},
    {0},
};

const struct command command_exchange = {
    .name = "exchange",
    .arguments = "[--wait] MOUNTPOINT epoch=E fraction=Q [seed=S] [wait=SEC]",
    .summary = "move a part of each node's samples to other nodes",
    .options = shuffle_options,
    .keys = exchange_keys,
    .run = exchange_command,
};

const struct command command_shuffle = {
    .name = "shuffle",
    .arguments = "[--wait] MOUNTPOINT seed=S [wait=SEC]",
    .summary = "move all samples to random nodes",
    .options = shuffle_options,
    .keys = shuffle_keys,
    .run = shuffle_command,
};
