/* Implements lab-options.h. */
#include "cli/lab/lab-options.h"

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
static bool reals_parse(const char *text, double min, double max, struct lab_reals *reals)
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
static bool numbers_parse(const char *text, double most, struct lab_numbers *numbers)
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

static int take_value(const struct command *command, const struct lab_option *o, void *value)
{
    switch (o->kind) {
    case LAB_FLAG:
        *(bool *)value = true;
        return COMMAND_DONE;
    case LAB_TEXT:
        *(const char **)value = optarg;
        return COMMAND_DONE;
    case LAB_NUMBERS:
        if (numbers_parse(optarg, o->most, value))
            return COMMAND_DONE;
        return command_usage(command, "--%s %s: must be 1 to %d numbers from 1 to %.0f, separated by commas", o->name,
                             optarg, NUMBERS_MOST, o->most);
    case LAB_REAL:
        if (real_parse(optarg, o->least, o->most, value))
            return COMMAND_DONE;
        return command_usage(command, "--%s %s: must be a number from %g to %g", o->name, optarg, o->least, o->most);
    case LAB_REALS:
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

int lab_options_parse(const struct command *command, const struct lab_option *table, const char *letters, void *values,
                      int argc, char **argv)
{
    struct option names[LAB_OPTIONS_MOST] = {0};
    int letter, status = COMMAND_DONE;
    for (int i = 0; table[i].name; i++)
        names[i] = (struct option){table[i].name, table[i].kind != LAB_FLAG, NULL, table[i].letter};
    opterr = 0;
    while (!status && (letter = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        const struct lab_option *o = table;
        if (letter == '?' || letter == ':')
            return command_bad_option(command, letter, argv);
        while (o->letter != letter)
            o++;
        status = take_value(command, o, (char *)values + o->place);
    }
    return status;
}
