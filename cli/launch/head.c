/* The job has phases; each begins when all nodes have completed the previous one.
 *
 *   mounting ─▶ joining ─▶ staging ─▶ running ─▶ ending
 *      └───────────┴──────────┴───────────┴─ a failure, a lost node, a signal ─▶ ending
 *
 * When this process ends for any reason, its channels end, and then the agents remove everything. */
#include "cli/launch/head.h"

#include "cli/base/command.h"
#include "cli/launch/console.h"
#include "cli/launch/launch-job.h"
#include "cli/launch/launch-world.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/ready.h"
#include "fs/base/size.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

enum phase { MOUNTING, JOINING, STAGING, RUNNING, ENDING };
enum { END_SECONDS = 45, LINE_MOST = 4096, FIXED = 4, PER_NODE = 3, SIGNALLED = 128 };

extern char **environ;

struct head {
    struct launch_nodes *nodes;
    const struct launch_wish *wish;
    struct launch_world world;
    enum phase phase;
    int status; /* the exit status; -1: unknown */
    int signals, interrupts;
    struct console console;
    struct str words; /* the current line of the world's output */
    char place[300];  /* ADDRESS PORT of the first node */
    uint64_t said, deadline;
    bool over; /* only output is still to be written */
    struct pollfd *polled;
};

/* --- progress --- */

static void say(struct head *h, const struct launch_node *node, const char *text)
{
    console_say(&h->console, node && h->nodes->way != WAY_ALONE ? node->host : NULL, text);
}

static bool is_missing(const struct head *h, const struct launch_node *node)
{
    return h->phase == MOUNTING ? !node->mounted : h->phase == JOINING ? node->joined != h->nodes->count : !node->gone;
}

/* One line per second; on a terminal it replaces the previous one. */
static void say_missing(struct head *h)
{
    static const char *const doing[] = {"mounting", "joining", "", "", "unmounting"};
    CLEANUP_STR struct str list = STR_INIT, line = STR_INIT;
    uint64_t now = clock_now();
    unsigned missing = 0;
    if (!doing[h->phase][0] || now - h->said < SECOND)
        return;
    h->said = now;
    for (unsigned i = 0; i < h->nodes->count; i++)
        if (is_missing(h, &h->nodes->node[i]) && missing++ < 4)
            str_addf(&list, "%s%s", missing > 1 ? ", " : "", h->nodes->node[i].host);
    if (!missing)
        return;
    if (missing > 4)
        str_addf(&list, " and %u more", missing - 4);
    str_addf(&line, "dealfs: %s: %u of %u nodes are done; waiting for %s", doing[h->phase], h->nodes->count - missing,
             h->nodes->count, command_why(&list, 0));
    console_progress(&h->console, command_why(&line, 0));
}

/* --- phases --- */

static void tell_all(struct head *h, enum channel_message message, const char *text)
{
    for (unsigned i = 0; i < h->nodes->count; i++)
        if (!h->nodes->node[i].gone)
            channel_say(&h->nodes->node[i].channel, message, text, strlen(text));
}

static void end_job(struct head *h, int status, bool now)
{
    if (h->status < 0)
        h->status = status;
    if (h->phase == ENDING && !now)
        return;
    h->deadline = clock_now() + (now ? 0 : h->wish->grace) * SECOND + clock_bound("DEALFS_LAUNCH_END", END_SECONDS);
    h->phase = ENDING;
    h->said = clock_now();
    tell_all(h, SAY_END, now ? "now" : "");
    launch_world_end(&h->world);
}

static void fail_job(struct head *h, const struct launch_node *node, int status, const char *why)
{
    CLEANUP_STR struct str line = STR_INIT;
    str_addf(&line, "dealfs: %s", why);
    say(h, node, command_why(&line, 0));
    end_job(h, status, false);
}

static void begin_running(struct head *h)
{
    unsigned count = h->wish->once ? 1 : h->nodes->count;
    console_clear(&h->console);
    h->phase = RUNNING;
    for (unsigned i = 0; i < h->nodes->count; i++) {
        if (i < count)
            channel_say(&h->nodes->node[i].channel, SAY_COMMAND, h->place, strlen(h->place));
        else
            h->nodes->node[i].status = COMMAND_DONE;
    }
}

static void begin_staging(struct head *h)
{
    console_clear(&h->console);
    h->phase = STAGING;
    channel_say(&h->nodes->node[0].channel, SAY_STAGE, "", 0);
}

static void begin_joining(struct head *h)
{
    CLEANUP_STR struct str why = STR_INIT;
    h->phase = JOINING;
    int error = launch_world_start(&h->world, h->nodes, h->wish->mountpoint, &why);
    if (error)
        fail_job(h, NULL, COMMAND_FAILED, command_why(&why, error));
}

static void step_phase(struct head *h)
{
    unsigned missing = 0, running = 0;
    for (unsigned i = 0; i < h->nodes->count; i++) {
        missing += is_missing(h, &h->nodes->node[i]);
        running += h->nodes->node[i].status < 0;
    }
    if (h->phase == MOUNTING && !missing && h->nodes->count > 1)
        begin_joining(h);
    else if ((h->phase == MOUNTING || h->phase == JOINING) && !missing && h->wish->stage)
        begin_staging(h);
    else if ((h->phase == MOUNTING || h->phase == JOINING) && !missing)
        begin_running(h);
    else if (h->phase == RUNNING && !running)
        end_job(h, COMMAND_DONE, false);
}

static void step_world(struct head *h)
{
    CLEANUP_STR struct str why = STR_INIT;
    bool ended = launch_world_ended(&h->world);
    if (h->phase == JOINING && (ended || launch_world_is_silent(&h->world)))
        fail_job(h, NULL, COMMAND_FAILED,
                 ended ? "the nodes could not be joined: see the lines above" : "the join of the nodes is silent");
    else if (ended && h->phase < ENDING)
        say(h, NULL, "dealfs: the world has ended: reads continue, and the nodes are joined again");
    if (!h->world.pid && h->nodes->count > 1 && (h->phase == STAGING || h->phase == RUNNING) &&
        clock_now() >= h->world.again && launch_world_start(&h->world, h->nodes, h->wish->mountpoint, &why))
        h->world.again = clock_now() + SECOND;
}

/* --- messages from agents --- */

static void lose_node(struct head *h, struct launch_node *node, const char *why)
{
    if (node->gone)
        return;
    node->gone = true;
    if (h->phase < ENDING)
        fail_job(h, node, COMMAND_FAILED, why);
    else
        say(h, node, "dealfs: the agent has ended before everything was removed: run `dealfs clean`");
}

/* An agent ends on request, or by SIGTERM from a scheduler. Then its command may already have succeeded. */
static void take_farewell(struct head *h, struct launch_node *node)
{
    if (h->phase < ENDING && (node->status < 0 || h->wish->once))
        lose_node(h, node, "the agent was ended by SIGTERM");
    node->gone = true;
}

static void take_failure(struct head *h, const struct launch_node *node, char *text)
{
    char *line = strchr(text, ' ');
    uint64_t status = COMMAND_FAILED;
    if (line)
        *line++ = '\0';
    number_parse(text, 0, 255, &status);
    if (line && *line && h->phase != ENDING)
        fail_job(h, node, (int)status, line);
    else
        end_job(h, (int)status, false);
}

static void take_status(struct head *h, struct launch_node *node, int message, uint64_t status)
{
    if (message == SAY_COMMAND) {
        node->status = (int)status;
        if (status)
            end_job(h, (int)status, false);
    } else if (h->phase == STAGING && status == COMMAND_DONE) {
        begin_running(h);
    } else if (h->phase == STAGING) {
        end_job(h, COMMAND_FAILED, false);
    }
}

static void take_message(struct head *h, struct launch_node *node, int message, struct str *payload)
{
    uint64_t number = 0;
    if (message == SAY_MOUNTED) {
        node->mounted = true;
        if (node == h->nodes->node)
            snprintf(h->place, sizeof h->place, "%s", payload->data);
    } else if (message == SAY_WORLD && number_parse(payload->data, 0, UINT32_MAX, &number) == 0) {
        node->joined = (unsigned)number;
    } else if (message == SAY_FAILED) {
        take_failure(h, node, payload->data);
    } else if ((message == SAY_COMMAND || message == SAY_STAGE) &&
               number_parse(payload->data, 0, UINT8_MAX, &number) == 0) {
        take_status(h, node, message, number);
    } else if (message == SAY_OUTPUT) {
        console_add(&h->console, &h->console.out, payload);
    } else if (message == SAY_ERRORS) {
        console_add(&h->console, &h->console.err, payload);
    } else if (message == SAY_GONE) {
        take_farewell(h, node);
    }
}

static void read_node(struct head *h, struct launch_node *node)
{
    CLEANUP_STR struct str payload = STR_INIT, noise = STR_INIT;
    struct channel *c = &node->channel;
    c->ended |= channel_read(c) != 0;
    for (int message; (message = channel_take(c, &payload, &noise));)
        take_message(h, node, message, &payload);
    if (noise.length > 1)
        say(h, node, noise.data);
}

/* Lines of started processes are printed as they arrive. */
static void read_lines(struct head *h, const struct launch_node *node, int *fd, struct str *words)
{
    char *end, *room = str_reserve(words, LINE_MOST);
    ssize_t n = room ? read(*fd, room, LINE_MOST) : 0;
    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0) {
        close(*fd);
        *fd = -1;
        n = 0;
        if (words->length)
            str_adds(words, "\n");
    }
    words->length += (size_t)n;
    h->world.heard = node ? h->world.heard : clock_now();
    while ((end = memchr(words->data, '\n', words->length))) {
        size_t length = (size_t)(end - words->data);
        *end = '\0';
        if (node || !h->world.ending)
            say(h, node, words->data);
        memmove(words->data, end + 1, words->length - length - 1);
        words->length -= length + 1;
    }
    if (words->length > LINE_MOST)
        words->length = 0;
}

/* --- signals --- */

static bool shares_terminal(const struct head *h)
{
    return h->nodes->way == WAY_ALONE && isatty(0);
}

static void take_signal(struct head *h, const struct signalfd_siginfo *info)
{
    int number = (int)info->ssi_signo;
    char text[16];
    h->interrupts += number == SIGINT;
    h->console.dropped = h->interrupts > 1;
    if (number == SIGCHLD)
        return;
    if (h->phase < RUNNING || h->interrupts > 1 || number == SIGHUP) {
        end_job(h, SIGNALLED + number, h->interrupts > 1);
        return;
    }
    /* the terminal has sent this signal to the command directly */
    if (info->ssi_code > 0 && shares_terminal(h))
        return;
    snprintf(text, sizeof text, "%d", number);
    tell_all(h, SAY_SIGNAL, text);
}

static void catch_signals(struct head *h)
{
    static const int caught[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++)
        sigaddset(&set, caught[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    h->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* --- the loop --- */

static size_t fill_polled(struct head *h)
{
    size_t n = 0;
    struct channel_out *out = &h->console.out, *err = &h->console.err;
    bool full = console_is_full(&h->console);
    h->polled[n++] = (struct pollfd){.fd = h->signals, .events = POLLIN};
    h->polled[n++] = (struct pollfd){.fd = full ? -1 : h->world.output, .events = POLLIN};
    h->polled[n++] = (struct pollfd){.fd = outlet_waits(out) ? out->fd : -1, .events = POLLOUT};
    h->polled[n++] = (struct pollfd){.fd = outlet_waits(err) ? err->fd : -1, .events = POLLOUT};
    for (unsigned i = 0; i < h->nodes->count; i++) {
        struct launch_node *node = &h->nodes->node[i];
        struct channel *c = &node->channel;
        h->polled[n++] = (struct pollfd){.fd = full || c->ended ? -1 : c->in, .events = POLLIN};
        h->polled[n++] = (struct pollfd){.fd = !c->ended && outlet_waits(&c->out) ? c->out.fd : -1, .events = POLLOUT};
        h->polled[n++] = (struct pollfd){.fd = full ? -1 : node->errors, .events = POLLIN};
    }
    return n;
}

static void wait_for_events(struct head *h)
{
    struct signalfd_siginfo info;
    size_t n = fill_polled(h);
    if (ready_wait(h->polled, n, CHANNEL_TICK_MS) <= 0)
        return;
    while (h->polled[0].revents && read(h->signals, &info, sizeof info) == sizeof info)
        take_signal(h, &info);
    if (h->polled[1].revents)
        read_lines(h, NULL, &h->world.output, &h->words);
    if (h->polled[2].revents)
        console_push(&h->console, &h->console.out);
    if (h->polled[3].revents)
        console_push(&h->console, &h->console.err);
    for (unsigned i = 0; i < h->nodes->count; i++) {
        struct launch_node *node = &h->nodes->node[i];
        const struct pollfd *polled = h->polled + FIXED + PER_NODE * i;
        if (polled[0].revents)
            read_node(h, node);
        if (polled[1].revents && outlet_push(&node->channel.out))
            node->channel.ended = true;
        if (polled[2].revents)
            read_lines(h, node, &node->errors, &node->words);
    }
}

/* True: no more messages will come from the node. */
static bool step_node(struct head *h, struct launch_node *node, bool listens)
{
    bool heard = channel_tick(&node->channel, listens) || h->nodes->way == WAY_ALONE;
    char silent[64];
    snprintf(silent, sizeof silent, "no message came for %u s", (unsigned)(node->channel.patience / SECOND));
    if (node->channel.ended)
        lose_node(h, node, node->channel.greeted ? "the agent has ended" : "no agent could be started");
    else if (!heard)
        lose_node(h, node, silent);
    return node->gone;
}

static void finish_job(struct head *h)
{
    h->over = true;
    for (unsigned i = 0; i < h->nodes->count; i++)
        if (!h->nodes->node[i].gone)
            say(h, &h->nodes->node[i], "dealfs: its agent has not confirmed that all was removed: run `dealfs clean`");
}

/* True: the job is over. While nobody reads our output, we do not read from agents; then their silence does not
 * count. */
static bool step(struct head *h)
{
    bool gone = true, listens = !console_is_full(&h->console);
    uint64_t end = clock_now() + clock_bound("DEALFS_LAUNCH_END", END_SECONDS);
    if (!listens && h->phase == ENDING && h->deadline < end)
        h->deadline = end;
    for (unsigned i = 0; i < h->nodes->count; i++)
        gone &= step_node(h, &h->nodes->node[i], listens);
    step_world(h);
    step_phase(h);
    say_missing(h);
    if (h->phase == ENDING && !h->over && (gone || clock_now() > h->deadline))
        finish_job(h);
    return h->over && !console_waits(&h->console);
}

static void start_nodes(struct head *h)
{
    static char *none[] = {NULL};
    char directory[4096];
    if (!getcwd(directory, sizeof directory))
        directory[0] = '\0';
    for (unsigned i = 0; i < h->nodes->count; i++) {
        CLEANUP_STR struct str text = STR_INIT, why = STR_INIT;
        struct launch_node *node = &h->nodes->node[i];
        const struct launch_job job = {
            .rank = i,
            .nodes = h->nodes->count,
            .grace = h->wish->grace,
            .host = node->host,
            .directory = directory,
            .options = h->wish->options,
            .source = h->wish->source,
            .mountpoint = h->wish->mountpoint,
            .command = h->wish->command,
            .environment = h->nodes->way == WAY_HOSTS ? environ : none,
        };
        int error = launch_nodes_start(h->nodes, i, &why);
        if (error) {
            lose_node(h, node, command_why(&why, error));
            continue;
        }
        launch_job_write(&job, &text);
        channel_say(&node->channel, SAY_JOB, text.data, text.length);
    }
}

int head_run(struct launch_nodes *nodes, const struct launch_wish *wish)
{
    struct head h = {.nodes = nodes, .wish = wish, .status = -1, .said = clock_now()};
    launch_world_init(&h.world);
    console_init(&h.console);
    h.polled = calloc(FIXED + PER_NODE * (size_t)nodes->count, sizeof *h.polled);
    if (!h.polled)
        return command_fail("launch: %s", strerror(ENOMEM));
    catch_signals(&h);
    start_nodes(&h);
    do
        wait_for_events(&h);
    while (!step(&h));
    launch_world_fini(&h.world);
    free(h.polled);
    close(h.signals);
    str_fini(&h.words);
    return console_fini(&h.console, h.status);
}
