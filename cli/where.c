/* `dealfs where`: shows which sample a path is, which node owns it, and which tier has it. */
#include "cli/base/command.h"

#include "cli/live/client.h"

#include <stdbool.h>
#include <string.h>

/* A reply's line is `sample<TAB>owner<TAB>tier<TAB>path`; `-` instead of the sample: there is none. */
static bool all_samples(const struct str *reply, char **paths, int count)
{
    const char *line = reply->data, *end = reply->data + reply->length;
    bool all = true;
    for (int i = 0; line < end && i < count; i++) {
        if (*line == '-')
            command_note(stderr, "%s: not in the dataset, or not a file", paths[i]);
        all &= *line != '-';
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        line = newline ? newline + 1 : end;
    }
    return all;
}

/* A path below the given mountpoint, which may contain symlinks, is shortened to the part after it. */
static const char *shorten_path(const char *path, const char *given)
{
    size_t n = strlen(given);
    while (n > 1 && given[n - 1] == '/')
        n--;
    return *path == '/' && strncmp(path, given, n) == 0 && path[n] == '/' && path[n + 1] ? path + n + 1 : path;
}

static int where_ask(const struct live *live, const char *given, char **paths, int count)
{
    CLEANUP_STR struct str request = STR_INIT, reply = STR_INIT, why = STR_INIT;
    str_adds(&request, "where sep=nul\n");
    for (int i = 0; i < count; i++) {
        const char *path = shorten_path(paths[i], given);
        str_add(&request, path, strlen(path) + 1);
    }
    int error = client_send(live, &request, &reply, &why);
    if (error)
        return command_fail("where %s: %s", live->mountpoint, command_why(&why, error));
    CLEANUP_STR struct str shown = STR_INIT;
    str_add_shown(&shown, reply.data ? reply.data : "", reply.length);
    int status = command_print("where", &shown);
    fflush(stdout);
    return !status && reply.length > 0 && all_samples(&reply, paths, count) ? COMMAND_DONE : COMMAND_FAILED;
}

static int where_command(int argc, char **argv)
{
    CLEANUP_LIVE struct live live = {0};
    int first = argc > 1 && strcmp(argv[1], "--") == 0 ? 2 : 1;
    if (argc - first < 2 || (first == 1 && argv[1][0] == '-'))
        return command_usage(&command_where, "a MOUNTPOINT and at least one PATH are needed");
    if (client_find(argv[first], LIVE_HUNG, &live))
        return COMMAND_FAILED;
    return where_ask(&live, argv[first], argv + first + 1, argc - first - 1);
}

const struct command command_where = {
    .name = "where",
    .arguments = "MOUNTPOINT PATH...",
    .summary = "show the sample number, owner and tier of files",
    .help = "PATH is absolute in the mount or the source, or relative to them. One line per path:\n"
            "sample, owner, tier and path, separated by tabs; - means none. A path that is not in the dataset is also\n"
            "named on stderr, and the exit status is 1.\n",
    .run = where_command,
};
