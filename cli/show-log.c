/* `dealfs log`: prints the log of a mount, which its processes write; with -f also new lines until the mount ends. */
#include "cli/base/options.h"

#include "cli/base/interrupt.h"
#include "cli/live/client.h"
#include "cli/live/owner-file.h"
#include "fs/base/cleanup.h"
#include "fs/base/ready.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

enum { LOOK_MS = 500 }; /* maximum delay until the end of a mount is noticed */

/* Copy from the file's position to its end. */
static int log_copy(int log)
{
    char bytes[65536];
    ssize_t n = 0;
    while (!interrupted && (n = read(log, bytes, sizeof bytes)) > 0) {
        CLEANUP_STR struct str shown = STR_INIT;
        str_add_shown(&shown, bytes, (size_t)n);
        if (shown.failed)
            return -ENOMEM;
        fwrite(shown.data, 1, shown.length, stdout);
    }
    int error = n < 0 && errno != EINTR ? -errno : 0;
    return fflush(stdout) == 0 ? error : -errno;
}

/* The keeper is the last process of a mount that writes. */
static int log_follow(const struct live *live, int log)
{
    char path[32], events[4096];
    CLEANUP_CLOSE int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", log);
    if (watch >= 0)
        inotify_add_watch(watch, path, IN_MODIFY);
    bool over = false;
    for (;;) {
        int error = log_copy(log);
        if (error || over || interrupted)
            return error;
        struct pollfd added = {.fd = watch, .events = POLLIN};
        if (ready_wait(&added, 1, LOOK_MS) > 0 && read(watch, events, sizeof events) < 0 && errno != EAGAIN)
            return -errno;
        over = kill(live->keeper, 0) < 0 && errno == ESRCH;
    }
}

static int log_show(const struct live *live, bool follow)
{
    if (!live->configured)
        return command_fail("%s: its state directory is not known to this user: run it as the owner of the mount",
                            live->mountpoint);
    CLEANUP_CLOSE int log = owner_file_open(live, "log", UINT64_MAX);
    int error = log < 0 ? log : follow ? log_follow(live, log) : log_copy(log);
    if (ferror(stdout)) /* command_end says so */
        return COMMAND_FAILED;
    if (error)
        return command_fail("%s: log in %s: %s", live->mountpoint, live->config.state, strerror(-error));
    return COMMAND_DONE;
}

static int log_command(int argc, char **argv)
{
    bool follow = false;
    CLEANUP_LIVE struct live live = {0};
    int status = command_options(&command_log, &follow, argc, argv);
    if (status)
        return status;
    if (argc - optind != 1)
        return command_usage(&command_log, "one MOUNTPOINT is needed");
    if (client_find(argv[optind], LIVE_HUNG, &live))
        return COMMAND_FAILED;
    interrupt_catch(SIGINT, SIGTERM);
    return log_show(&live, follow);
}

static const struct command_option log_options[] = {
    {"follow", 'f', OPTION_FLAG, NULL, "also print what is added, until the mount ends or Ctrl-C", .place = 0},
    {0},
};

const struct command command_log = {
    .name = "log",
    .arguments = "[-f | --follow] MOUNTPOINT",
    .summary = "print the log of a mount",
    .options = log_options,
    .run = log_command,
};
