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
    COMMAND_FAILED = 1,   /* one line on stderr has said what, on what, why */
    COMMAND_USAGE = 2,    /* wrong usage, said by command_usage */
    COMMAND_DEGRADED = 3, /* `status` only: it works with less than it was given, or did within the hour */
    COMMAND_FAULT = 4,    /* `status` only: reads fail or wait now */
};

struct command {
    const char *name;
    const char *arguments;  /* of the usage line: "[-f] [-o OPTIONS] SOURCE MOUNTPOINT" */
    const char *summary;    /* in the list of commands: "mount a dataset"; "": it is not in it */
    const char *help;       /* the options, one per line, indented by two spaces; "" where there are none */
    const struct key *keys; /* of the words KEY=VALUE that it takes, for its help; NULL: none */
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

/* `dealfs NAME: what is wrong`, then the usage line, on stderr. Returns COMMAND_USAGE. */
int command_usage(const struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same of what getopt_long has just answered with '?' or ':'. */
int command_bad_option(const struct command *command, int option, char **argv);
/* `dealfs: what, on what, why` on stderr. Returns COMMAND_FAILED. */
int command_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same of an option's value, of which `why` has the line. */
int command_bad_value(const struct str *why);
/* Becomes a program of the user's; where it cannot, says so and returns the exit status that a shell would. */
int command_execute(char **words);
/* What there is to say of a failure: the line that has been left in `why`, else what -errno `error` means. */
const char *command_why(const struct str *why, int error);
/* The same as command_fail for a line that is no failure. */
void command_note(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The exit status of a program whose command returned `status`: a failure if standard output could not be written. */
int command_end(int status);

/* The subcommands that mount(8) and umount(8) call as mount.fuse.dealfs and umount.fuse.dealfs. */
int command_mount_helper(int argc, char **argv);
int command_umount_helper(int argc, char **argv);

#endif
