/* The command dealfs. Finds the subcommand by the name of the program and the first argument. Each subcommand has its
 * own file.
 *
 *   dealfs COMMAND …                 a line of the table
 *   dealfs SOURCE MOUNTPOINT -o …    as mount(8)'s generic helper calls a FUSE file system: `mount`
 *   mount.fuse.dealfs, umount.fuse.dealfs    links to it, for mount(8) and umount(8) */
#include "cli/base/options.h"
#include "fs/base/version.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
static const struct command *const commands[] = {
    &command_mount,
    &command_join,
    &command_umount,
    &command_run,
    &command_launch,
    &command_mounter,
    &command_enter,
    &command_status,
    &command_top,
    &command_log,
    &command_upgrade,
    &command_wait,
    &command_stage,
    &command_exchange,
    &command_shuffle,
    &command_index,
    &command_where,
    &command_verify,
    &command_doctor,
    &command_clean,
    &command_plan,
    &command_simulate,
    &command_model,
    &command_demo,
    &command_scan,
};
/* clang-format on */
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static int print_version(void)
{
    printf("dealfs %s\n", version_text);
    return COMMAND_DONE;
}

/* Commands to start with, in this order. */
/* clang-format off */
static const struct command *const main_commands[] = {
    &command_mount,
    &command_run,
    &command_launch,
    &command_stage,
    &command_status,
    &command_top,
    &command_umount,
    &command_doctor,
    &command_demo,
};
/* clang-format on */
enum { MAIN_COMMANDS = sizeof main_commands / sizeof main_commands[0] };

static int print_help(bool all)
{
    const struct command *const *list = all ? commands : main_commands;
    puts("usage: dealfs COMMAND …\n"
         "\n"
         "A read-only file system: the nodes of a training job cache one dataset together, in RAM and on SSDs.\n"
         "\n"
         "commands:");
    for (int i = 0; i < (all ? COMMANDS : MAIN_COMMANDS); i++)
        if (list[i]->summary[0])
            printf("  %-8s %s\n", list[i]->name, list[i]->summary);
    printf("\n"
           "%s`dealfs COMMAND --help` describes a command. `man dealfs` is the manual.\n",
           all ? "" : "`dealfs help all` lists all commands; ");
    return COMMAND_DONE;
}

static int print_command_help(const struct command *c)
{
    command_print_help(c);
    return COMMAND_DONE;
}

static const struct command *find_command(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static bool is_help(const char *argument)
{
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static bool is_version(const char *argument)
{
    return strcmp(argument, "--version") == 0 || strcmp(argument, "-V") == 0;
}

/* Arguments after `--` belong to another program. */
static int run_command(const struct command *c, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (is_help(argv[i]))
            return print_command_help(c);
        if (strcmp(argv[i], "--version") == 0)
            return print_version();
    }
    return c->run(argc, argv);
}

/* A source is a path; command names have no slash. */
static bool looks_like_mount(int argc, char **argv)
{
    if (strchr(argv[1], '/'))
        return true;
    if (argv[1][0] == '-')
        return strncmp(argv[1], "-o", 2) == 0 || strcmp(argv[1], "-f") == 0;
    for (int i = 2; i < argc; i++)
        if (strncmp(argv[i], "-o", 2) == 0)
            return true;
    return false;
}

static int refuse_command(const char *name)
{
    struct nearest best = {0};
    for (int i = 0; i < COMMANDS; i++)
        if (commands[i]->summary[0])
            nearest_try(&best, name, strlen(name), commands[i]->name);
    const char *meant = nearest_meant(&best, strlen(name));
    command_fail("%s: no such command%s%s%s (`dealfs help all` lists them)", name, meant ? ". Did you mean `" : "",
                 meant ? meant : "", meant ? "`?" : "");
    return COMMAND_USAGE;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        fputs("usage: dealfs COMMAND …   (`dealfs help all` lists them)\n", stderr);
        return COMMAND_USAGE;
    }
    const struct command *c = find_command(argv[1]);
    if (c)
        return run_command(c, argc - 1, argv + 1);
    if (is_help(argv[1]) || strcmp(argv[1], "help") == 0)
        return argc > 2 && (c = find_command(argv[2])) ? print_command_help(c)
                                                       : print_help(argc > 2 && strcmp(argv[2], "all") == 0);
    if (is_version(argv[1]))
        return print_version();
    if (looks_like_mount(argc, argv))
        return run_command(&command_mount, argc, argv);
    return refuse_command(argv[1]);
}

static int run_by_name(int argc, char **argv)
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "dealfs";
    if (strncmp(name, "mount.", 6) == 0)
        return command_mount_helper(argc, argv);
    if (strncmp(name, "umount.", 7) == 0)
        return command_umount_helper(argc, argv);
    return dispatch(argc, argv);
}

/* If one of the standard descriptors is closed, the next file gets its number, and messages are written into it. */
static bool open_standard(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    return fd >= 0 && close(fd) == 0;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_DFL);
    if (!open_standard())
        return command_fail("open /dev/null: %s", strerror(errno));
    return command_end(run_by_name(argc, argv));
}
