/* Parses the options of a subcommand, by a table, from which its help is also made. */
#ifndef CLI_BASE_OPTIONS_H
#define CLI_BASE_OPTIONS_H

#include "cli/base/command.h"

#include <stddef.h>
#include <stdint.h>

enum { NUMBERS_MOST = 64 };
struct option_numbers {
    int count;
    uint32_t number[NUMBERS_MOST];
};
/* `--epoch=N`, `--epoch N` or `--epoch`. Only a following argument that consists of digits is taken for N. */
struct option_latest {
    bool given, latest; /* latest: without a number */
    uint64_t number;
};
struct option_reals {
    int count;
    double number[NUMBERS_MOST];
};

/* Type and destination of a value: a bool, a const char *, a struct str to which values are appended with commas, a
 * uint64_t of nanoseconds, a uint64_t of 1 to `most`, a struct option_numbers of these, a double of `least` to `most`,
 * a struct option_reals of these, a struct option_latest. */
enum option_type {
    OPTION_FLAG,
    OPTION_TEXT,
    OPTION_LIST,
    OPTION_TIME,
    OPTION_NUMBER,
    OPTION_NUMBERS,
    OPTION_REAL,
    OPTION_REALS,
    OPTION_LATEST
};

enum { OPTIONS_MOST = 24 };
struct command_option {
    const char *name; /* NULL: end of the table; "": it has only a letter */
    char letter;      /* 0: none */
    enum option_type kind;
    const char *value; /* placeholder of the value in the help: "FILE" */
    const char *help;  /* one line; NULL: not documented */
    size_t place;      /* offset in `values` */
    double least, most;
    bool required; /* checked by the command */
};

/* Parses the options of command->options. Returns an exit status; optind is at the first argument. */
int command_options(const struct command *command, void *values, int argc, char **argv);
/* Prints the usage, the summary, and the help of options and keys. */
void command_print_help(const struct command *command);

#endif
