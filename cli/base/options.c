#include "cli/base/options.h"

#include "fs/base/size.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

/* Returns what follows the number; NULL: not a number. */
static const char *real_end(const char *text, double min, double max, double *value)
{
    char *end;
    if (!strchr("0123456789.", *text) || !*text)
        return NULL;
    errno = 0;
    *value = strtod(text, &end);
    return !errno && *value >= min && *value <= max ? end : NULL;
}

static bool real_parse(const char *text, double min, double max, double *value)
{
    const char *end = real_end(text, min, max, value);
    return end && !*end;
}

/* "1,1.5,2" */
static bool reals_parse(const char *text, double min, double max, struct option_reals *reals)
{
    for (reals->count = 0; reals->count < NUMBERS_MOST; text++) {
        text = real_end(text, min, max, &reals->number[reals->count++]);
        if (!text || !*text)
            return text;
        if (*text != ',')
            return false;
    }
    return false;
}

/* "16,64,256" */
static bool numbers_parse(const char *text, double most, struct option_numbers *numbers)
{
    numbers->count = 0;
    for (;; text++) {
        char *end;
        unsigned long value;
        if (*text < '0' || *text > '9')
            return false;
        errno = 0;
        value = strtoul(text, &end, 10);
        if (errno || value == 0 || (double)value > most || (*end && *end != ',') || numbers->count == NUMBERS_MOST)
            return false;
        numbers->number[numbers->count++] = (uint32_t)value;
        if (!*end)
            return true;
        text = end;
    }
}

static int take_value(const struct command *command, const struct command_option *o, void *value)
{
    switch (o->kind) {
    case OPTION_FLAG:
        *(bool *)value = true;
        return COMMAND_DONE;
    case OPTION_TEXT:
        *(const char **)value = optarg;
        return COMMAND_DONE;
    case OPTION_LIST:
        str_addf(value, "%s%s", ((struct str *)value)->length ? "," : "", optarg);
        return COMMAND_DONE;
    case OPTION_TIME:
        if (duration_parse(optarg, value) == 0)
            return COMMAND_DONE;
        return command_usage(command, "--%s %s: not a time", o->name, optarg);
    case OPTION_NUMBERS:
        if (numbers_parse(optarg, o->most, value))
            return COMMAND_DONE;
        return command_usage(command, "--%s %s: must be 1 to %d numbers from 1 to %.0f, separated by commas", o->name,
                             optarg, NUMBERS_MOST, o->most);
    case OPTION_REAL:
        if (real_parse(optarg, o->least, o->most, value))
            return COMMAND_DONE;
        return command_usage(command, "--%s %s: must be a number from %g to %g", o->name, optarg, o->least, o->most);
    case OPTION_REALS:
        if (reals_parse(optarg, o->least, o->most, value))
            return COMMAND_DONE;
        return command_usage(command, "--%s %s: must be 1 to %d numbers from %g to %g, separated by commas", o->name,
                             optarg, NUMBERS_MOST, o->least, o->most);
    default:
        if (number_parse(optarg, 1, (uint64_t)o->most, value) == 0)
            return COMMAND_DONE;
        return command_usage(command, "--%s %s: must be a number from 1 to %.0f", o->name, optarg, o->most);
    }
}

enum { ROW = 256 }; /* plus the number of a row: what getopt_long returns for a long option */

/* The table as getopt_long wants it. `letters`: room for three per option and three more. */
static void convert_table(const struct command *command, const struct command_option *table, struct option *names,
                          char *letters)
{
    letters = stpcpy(letters, command->runs_another ? "+:" : ":");
    for (const struct command_option *o = table; o->name; o++) {
        if (*o->name)
            *names++ = (struct option){o->name, o->kind != OPTION_FLAG, NULL, ROW + (int)(o - table)};
        if (o->letter)
            letters += sprintf(letters, o->kind == OPTION_FLAG ? "%c" : "%c:", o->letter);
    }
}

int command_options(const struct command *command, const struct command_option *table, void *values, int argc,
                    char **argv)
{
    struct option names[OPTIONS_MOST + 1] = {0};
    char letters[3 * OPTIONS_MOST];
    int found, status = COMMAND_DONE;
    convert_table(command, table, names, letters);
    opterr = 0;
    while (!status && (found = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        const struct command_option *o = found < ROW ? table : &table[found - ROW];
        if (found == '?' || found == ':')
            return command_bad_option(command, found, argv);
        while (found < ROW && o->letter != found)
            o++;
        status = take_value(command, o, (char *)values + o->place);
    }
    return status;
}
