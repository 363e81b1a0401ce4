/* The subcommands of `dealfs`: a table, one file each.
 *
 * main() picks one by name and answers --help and --version for all of them, so that a subcommand sees neither. It gets
 * its own arguments (argv[0] is its name, optind is 1) and returns the exit status of the process. */
#ifndef CLI_BASE_COMMAND_H
#define CLI_BASE_COMMAND_H

#include "fs/base/keys.h"

#include <stdbool.h>
#include <stdio.h>

enum command_status {
    COMMAND_DONE = 0,
    COMMAND_FAILED = 1,   /* one line on stderr has said what failed, on what, and why */
    COMMAND_USAGE = 2,    /* wrong usage, reported by command_usage */
    COMMAND_DEGRADED = 3, /* only `status`: it works with less than it was given, or did within the last hour */
    COMMAND_FAULT = 4,    /* only `status`: reads fail or wait now */
};

struct command_option;
struct command {
    const char *name;
    const char *arguments;                /* for the usage line: "[-f] [-o OPTIONS] SOURCE MOUNTPOINT" */
    const char *summary;                  /* for the list of commands: "mount a dataset"; "": it is not listed */
    const struct command_option *options; /* cli/base/options.h; NULL: none */
    const struct command_option *others;  /* those of another form of the command; their help is the last; NULL: none */
    const struct key *keys;               /* of its arguments KEY=VALUE; NULL: none */
    void (*mount_options)(struct str *help); /* adds the help of `-o`; NULL: none */
    const char *help;                        /* lines after the help of these; NULL: none */
    bool runs_another; /* its last arguments are a command: options end at its first other argument */
    int (*refuse)(const struct command *command, int argc, char **argv); /* an unknown `--option`; NULL: usual words */
    int (*run)(int argc, char **argv);
};

extern const struct command command_mount;
extern const struct command command_join;
extern const struct command command_umount;
extern const struct command command_upgrade;
extern const struct command command_run;
extern const struct command command_mounter;
extern const struct command command_launch;
extern const struct command command_enter;
extern const struct command command_status;
extern const struct command command_top;
extern const struct command command_log;
extern const struct command command_wait;
extern const struct command command_stage;
extern const struct command command_exchange;
extern const struct command command_shuffle;
extern const struct command command_index;
extern const struct command command_where;
extern const struct command command_verify;
extern const struct command command_doctor;
extern const struct command command_clean;
extern const struct command command_demo;
extern const struct command command_plan;
extern const struct command command_simulate;
extern const struct command command_model;
extern const struct command command_scan; /* hidden */

/* Prints `dealfs NAME: what is wrong` and the usage line on stderr. Returns COMMAND_USAGE. */
int command_usage(const struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints `dealfs: what, on what, why` on stderr. Returns COMMAND_FAILED. */
int command_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for an option's value; `why` has the line. */
int command_bad_value(const struct str *why);
/* Executes a program of the user. On failure, reports it and returns the exit status that a shell would return. */
int command_execute(char **words);
/* The text of a failure: the line in `why`; if it is empty, the meaning of -errno `error`. */
const char *command_why(const struct str *why, int error);
/* Like command_fail, for a line that is no failure. */
void command_note(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes text to standard output. Returns an exit status: a failure, reported for `name`, if memory ran out. */
int command_print(const char *name, const struct str *text);
/* The exit status of a program whose command returned `status`: a failure if standard output could not be written. */
int command_end(int status);
int command_lost(int status); /* it could not: says so */

/* The subcommands that mount(8) and umount(8) call as mount.fuse.dealfs and umount.fuse.dealfs. */
int command_mount_helper(int argc, char **argv);
int command_umount_helper(int argc, char **argv);

#endif
