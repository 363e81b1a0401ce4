/* `dealfs plan`: sends a `plan` request made of words, with the order from stdin, and copies the reply to stdout.
 * Nothing is stored here: lists may be larger than memory. */
#include "cli/base/command.h"

#include "cli/base/place.h"
#include "cli/live/client.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/plan/plan-request.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

/* Makes one line of the words, and escapes values. */
static int make_line(int count, char **words, struct str *line, bool *payload)
{
    str_adds(line, "plan");
    for (int i = 0; i < count; i++) {
        if (!client_add_pair(line, words[i]))
            return command_usage(&command_plan, "%s: not of the form KEY=VALUE", words[i]);
        if (strncmp(words[i], "order=", 6) == 0)
            *payload = strcmp(words[i], "order=natural") != 0;
    }
    str_adds(line, "\n");
    return line->failed ? command_fail("plan: out of memory") : COMMAND_DONE;
}

/* Report a failed read or write of the stream. -ESTALE: there is none, because the server
 * has died; if nothing of order and reply was transferred yet, the next server can be asked. */
static int fail_plan(const char *mountpoint, int fd, int error, bool begun)
{
    CLEANUP_STR struct str why = STR_INIT;
    client_reason(fd, &why);
    if (error == -ESTALE && why.length == 0 && !begun)
        return -ESTALE;
    return command_fail("plan %s: %s", mountpoint, command_why(&why, error));
}

static ssize_t read_some(int fd, char *buffer)
{
    ssize_t n;
    do
        n = read(fd, buffer, PIECE);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static int send_order(const char *mountpoint, int fd, char *buffer)
{
    ssize_t n;
    while ((n = read_some(STDIN_FILENO, buffer)) > 0) {
        int error = file_write_all(fd, buffer, (size_t)n);
        if (error)
            return fail_plan(mountpoint, fd, error, true);
    }
    return n < 0 ? command_fail("plan %s: read the order: %s", mountpoint, strerror((int)-n)) : COMMAND_DONE;
}

static int take_reply(const char *mountpoint, int fd, char *buffer, bool begun)
{
    ssize_t n;
    while ((n = read_some(fd, buffer)) > 0) {
        int error = file_write_all(STDOUT_FILENO, buffer, (size_t)n);
        if (error)
            return command_fail("plan %s: write: %s", mountpoint, strerror(-error));
        begun = true;
    }
    return n < 0 ? fail_plan(mountpoint, fd, (int)n, begun) : COMMAND_DONE;
}

/* Returns an exit status; -ESTALE: the next server can be asked. */
static int ask_server(const char *mountpoint, const char *path, const struct str *line, bool payload, char *buffer)
{
    CLEANUP_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return command_fail("open %s: %s", path, strerror(errno));
    int error = file_write_all(fd, line->data, line->length);
    if (error)
        return fail_plan(mountpoint, fd, error, false);
    int status = payload ? send_order(mountpoint, fd, buffer) : COMMAND_DONE;
    return status ? status : take_reply(mountpoint, fd, buffer, payload);
}

static int plan_ask(const struct live *live, const struct str *line, bool payload)
{
    CLEANUP_FREE char *buffer = malloc(PIECE), *path = place_join(live->control, "control");
    int status, servers = 0;
    if (!path || !buffer)
        return command_fail("plan %s: out of memory", live->mountpoint);
    do
        status = ask_server(live->mountpoint, path, line, payload, buffer);
    while (client_asks_again(status, 0, &servers));
    return status < 0 ? command_fail("plan %s: %s", live->mountpoint, strerror(-status)) : status;
}

static int plan_command(int argc, char **argv)
{
    CLEANUP_STR struct str line = STR_INIT;
    CLEANUP_LIVE struct live live = {0};
    bool payload = false;
    int first = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;
    if (argc - first < 2 || (first == 1 && argv[1][0] == '-'))
        return command_usage(&command_plan, "a MOUNTPOINT and KEY=VALUE words are needed");
    int status = make_line(argc - first - 1, argv + first + 1, &line, &payload);
    if (status)
        return status;
    if (client_find(argv[first], LIVE_ELSEWHERE, &live))
        return COMMAND_FAILED;
    status = client_become(&live);
    return status ? status : plan_ask(&live, &line, payload);
}

const struct command command_plan = {
    .name = "plan",
    .arguments = "MOUNTPOINT epoch=E ranks=R batch=B [KEY=VALUE...]",
    .summary = "deal an epoch's order to the ranks",
    .help = "Except for order=, the first of several values is the default. An order=u32, u64 or text is read from "
            "stdin.\n",
    .keys = plan_keys,
    .run = plan_command,
};
