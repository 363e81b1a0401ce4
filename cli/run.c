/* dealfs run: a mount for one program, in its own namespaces; without root and fusermount3, and nothing is left
 * afterwards. */
#include "cli/base/interrupt.h"
#include "cli/base/options.h"
#include "cli/mount/limits.h"
#include "cli/mount/namespace.h"
#include "cli/mount/start.h"
#include "fs/attach/attach.h"
#include "fs/base/cleanup.h"
#include "fs/base/ready.h"

#include <getopt.h>
#include <string.h>
#include <sys/wait.h>

enum { SIGNALLED = 128, END_SECONDS = 10 };

static const int forwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};

static void waited_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++)
        sigaddset(set, forwarded[i]);
}

static _Noreturn void execute_command(char **command, const sigset_t *mask)
{
    for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++)
        signal(forwarded[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    limits_restore();
    _exit(command_execute(command));
}

/* Signals of the terminal reach the whole group, including the command; only a signal for this process alone is
 * passed on. */
static int await_command(pid_t pid, const sigset_t *set)
{
    for (;;) {
        siginfo_t info;
        int status, number = sigwaitinfo(set, &info);
        if (number > 0 && number != SIGCHLD && info.si_code <= 0)
            kill(pid, number);
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALLED + WTERMSIG(status);
    }
}

static int run_program(char **command)
{
    sigset_t set, before;
    waited_signals(&set);
    sigprocmask(SIG_BLOCK, &set, &before);
    if (interrupted)
        return SIGNALLED + interrupted;
    pid_t pid = fork();
    if (pid == 0)
        execute_command(command, &before);
    if (pid < 0)
        return command_fail("run %s: %s", command[0], strerror(errno));
    return await_command(pid, &set);
}

/* Lazily: processes that the command has left running keep their open files, and the mount ends with them. */
static void take_away(struct start *s)
{
    CLEANUP_STR struct str ignored = STR_INIT;
    struct pollfd end = {.fd = s->life, .events = 0};
    attach_unmount(s->config.mountpoint, s->config.data_minor, true, &ignored);
    if (!s->config.nested)
        attach_unmount(s->config.control, s->config.control_minor, true, &ignored);
    if (ready_wait(&end, 1, END_SECONDS * 1000) <= 0)
        command_note(stderr,
                     "%s: processes of the command are still running there; the mount ends with the last of them",
                     s->config.mountpoint);
    waitpid(s->keeper, NULL, WNOHANG);
}

static int mount_and_run(struct start *s, char **command)
{
    CLEANUP_STR struct str why = STR_INIT;
    int error = prepare_owner(s, &why);
    if (!error && s->owner.another)
        error = str_fail(&why, -EINVAL,
                         "option owner: `dealfs run` mounts for the user who runs the command; use `dealfs mount`");
    if (!error && s->options.mounter)
        error = str_fail(&why, -EINVAL,
                         "option mounter: `dealfs run` mounts in a namespace of its own; use `dealfs mount`");
    if (!error)
        error = namespace_make(&s->namespaced, &why);
    if (!error)
        error = start_mount(s, &why);
    if (error)
        return command_fail("%s", command_why(&why, error));
    int status = run_program(command);
    take_away(s);
    return status;
}

/* The command's own options are not ours: ours end at `--` or, without it, at SOURCE. */
static int parse_and_run(struct start *s, int argc, char **argv)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct command command = command_run;
    int ours = argc;
    for (int i = argc - 1; i > 0; i--)
        if (strcmp(argv[i], "--") == 0)
            ours = i;
    command.runs_another = ours == argc;
    int status = command_options(&command, s, ours, argv);
    if (status)
        return status;
    if (options_take(&s->options, &s->given, &why))
        return command_bad_value(&why);
    int first = ours < argc ? ours + 1 : optind + 2;
    if (optind + 2 > ours || (ours < argc && optind + 2 != ours) || first >= argc)
        return command_usage(&command_run, "a SOURCE, a MOUNTPOINT and a command are needed");
    s->source = argv[optind];
    s->mountpoint = argv[optind + 1];
    return mount_and_run(s, argv + first);
}

static int run_command(int argc, char **argv)
{
    struct start s;
    start_init(&s);
    s.attached = true;
    s.to = stderr;
    int status = parse_and_run(&s, argc, argv);
    start_fini(&s);
    return status;
}

static const struct command_option run_options[] = {
    {"", 'o', OPTION_LIST, "OPTION,…", "as for `dealfs mount`", .place = offsetof(struct start, given)},
    {0},
};

const struct command command_run = {
    .name = "run",
    .arguments = "[-o OPTION,…] SOURCE MOUNTPOINT -- COMMAND…",
    .summary = "mount in a private namespace, run a command there, unmount",
    .options = run_options,
    .help = "Needs neither root nor fusermount3, but user namespaces and access to /dev/fuse.\n"
            "The exit status is that of the command: 128 + N if signal N ended it, 127 if it was not found.\n",
    .refuse = options_refuse,
    .run = run_command,
};
