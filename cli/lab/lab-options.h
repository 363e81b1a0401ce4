/* Parses the options of `simulate` and `model`, by a table. */
#ifndef CLI_LAB_LAB_OPTIONS_H
#define CLI_LAB_LAB_OPTIONS_H

#include "cli/base/command.h"

#include <stddef.h>
#include <stdint.h>

enum { NUMBERS_MOST = 64 };
struct lab_numbers {
    int count;
    uint32_t number[NUMBERS_MOST];
};
struct lab_reals {
    int count;
    double number[NUMBERS_MOST];
};

/* Type and destination of a value: a bool, a const char *, a uint64_t of 1 to `most`, a struct lab_numbers of these, a
 * double of `least` to `most`, a struct lab_reals of these. */
enum lab_kind { LAB_FLAG, LAB_TEXT, LAB_NUMBER, LAB_NUMBERS, LAB_REAL, LAB_REALS };

enum { LAB_OPTIONS_MOST = 24 };
struct lab_option {
    const char *name; /* NULL: end of the table */
    char letter;
    enum lab_kind kind;
    size_t place; /* offset in the struct of values */
    double least, most;
    bool required; /* checked by the command */
};

/* `letters`: short options, as for getopt. Returns an exit status; optind is at the first argument. */
int lab_options_parse(const struct command *command, const struct lab_option *table, const char *letters, void *values,
                      int argc, char **argv);

#endif
