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
    for (numbers->count = 0; numbers->count < NUMBERS_MOST && *text >= '0' && *text <= '9'; text++) {
        unsigned long value = strtoul(text, (char **)&text, 10);
        if (value == 0 || (double)value > most || (*text && *text != ','))
            return false;
        numbers->number[numbers->count++] = (uint32_t)value;
        if (!*text)
            return true;
    }
    return false;
}

static bool latest_parse(int argc, char **argv, struct option_latest *value)
{
    const char *text = optarg;
    if (!text && optind < argc && argv[optind][0] && strspn(argv[optind], "0123456789") == strlen(argv[optind]))
        text = argv[optind++];
    *value = (struct option_latest){.given = true, .latest = !text};
    return !text || number_parse(text, 0, UINT64_MAX, &value->number) == 0;
}

static int take_value(const struct command *command, const struct command_option *o, void *value, int argc, char **argv)
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
    case OPTION_LATEST:
        return latest_parse(argc, argv, value) ? COMMAND_DONE : command_usage(command, "--%s takes a number", o->name);
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
    case OPTION_NUMBER:
        break;
    }
    if (number_parse(optarg, 1, (uint64_t)o->most, value) == 0)
        return COMMAND_DONE;
    return command_usage(command, "--%s %s: must be a number from 1 to %.0f", o->name, optarg, o->most);
}

enum { ROW = 256 }; /* plus the number of a row: what getopt_long returns for a long option */

/* The table as getopt_long wants it. `letters`: room for three per option and three more. */
static void convert_table(const struct command *command, const struct command_option *table, struct option *names,
                          char *letters)
{
    letters = stpcpy(letters, command->runs_another ? "+:" : ":");
    for (const struct command_option *o = table; o->name; o++) {
        if (*o->name)
            *names++ = (struct option){o->name,
                                       o->kind == OPTION_FLAG     ? no_argument
                                       : o->kind == OPTION_LATEST ? optional_argument
                                                                  : required_argument,
                                       NULL, ROW + (int)(o - table)};
        if (o->letter)
            letters += sprintf(letters, o->kind == OPTION_FLAG ? "%c" : "%c:", o->letter);
    }
}

static int refuse_option(const struct command *command, bool unknown, int argc, char **argv)
{
    const char letter[] = {'-', (char)optopt, '\0'};
    bool is_letter = optopt > 0 && optopt < ROW; /* maybe one of several in a word, which is not over yet */
    const char *word = is_letter ? letter : argv[optind - 1];
    if (unknown && command->refuse && strncmp(word, "--", 2) == 0)
        return command->refuse(command, argc, argv);
    return command_usage(command, "option %s: %s", word, unknown ? "unknown option" : "its value is missing");
}

int command_options(const struct command *command, void *values, int argc, char **argv)
{
    static const struct command_option none = {0};
    const struct command_option *table = command->options ? command->options : &none;
    struct option names[OPTIONS_MOST + 1] = {0};
    char letters[3 * OPTIONS_MOST];
    int found, status = COMMAND_DONE;
    convert_table(command, table, names, letters);
    opterr = 0;
    optind = 1;
    while (!status && (found = getopt_long(argc, argv, letters, names, NULL)) != -1) {
        const struct command_option *o = found < ROW ? table : &table[found - ROW];
        if (found == '?' || found == ':')
            return refuse_option(command, found == '?', argc, argv);
        while (found < ROW && o->letter != found)
            o++;
        status = take_value(command, o, (char *)values + o->place, argc, argv);
    }
    return status;
}

/* --- the help --- */

static void add_option(const struct command_option *o, struct str *text)
{
    str_adds(text, "  ");
    if (o->letter)
        str_addf(text, "-%c%s", o->letter, *o->name ? ", " : "");
    str_addf(text, "%s%s%s%s\t%s\n", *o->name ? "--" : "", o->name, o->value ? " " : "", o->value ? o->value : "",
             o->help);
}

static void add_options(const struct command_option *o, struct str *text)
{
    for (; o && o->name; o++)
        if (o->help)
            add_option(o, text);
}

/* Characters of UTF-8, each of one column. */
static size_t count_columns(const char *text, size_t n)
{
    size_t columns = 0;
    while (n-- > 0)
        columns += ((unsigned char)text[n] & 0xC0) != 0x80;
    return columns;
}

/* A tab ends the first column, which is as wide as its widest text of up to WIDTH_MOST. */
static void print_columns(const char *text)
{
    enum { WIDTH_MOST = 34 };
    size_t width = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        size_t n = strcspn(line, "\t\n"), columns = count_columns(line, n);
        if (line[n] == '\t' && columns > width && columns <= WIDTH_MOST)
            width = columns;
    }
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        size_t n = strcspn(line, "\t\n"), columns = count_columns(line, n);
        printf("%.*s", (int)n, line);
        if (line[n] == '\t')
            printf("%*s%.*s", (int)(columns < width ? width - columns : 0) + 2, "", (int)strcspn(line + n + 1, "\n"),
                   line + n + 1);
        printf("\n");
    }
}

void command_print_help(const struct command *command)
{
    CLEANUP_STR struct str text = STR_INIT, others = STR_INIT;
    if (command->keys)
        keys_add_help(command->keys, &text);
    add_options(command->options, &text);
    if (command->mount_options)
        command->mount_options(&text);
    add_options(command->others, &others);
    printf("usage: dealfs %s %s\n\n%s\n%s", command->name, command->arguments, command->summary,
           text.length > 0 ? "\n" : "");
    print_columns(text.length > 0 ? text.data : "");
    printf("%s%s", command->help ? "\n" : "", command->help ? command->help : "");
    print_columns(others.length > 0 ? others.data : "");
}
