/* How a subcommand speaks: one line, with the program's name before it. */
#include "cli/command.h"

#include <stdarg.h>

static void say(FILE *to, const char *name, const char *format, va_list args)
{
    CLEANUP_STR struct str line = STR_INIT;

    str_addf(&line, "dealfs%s%s: ", name ? " " : "", name ? name : "");
    str_addv(&line, format, args);
    str_adds(&line, "\n");
    fputs(line.failed ? "dealfs: out of memory\n" : line.data, to);
    fflush(to);
}

int command_usage(const struct command *command, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(stderr, command->name, format, args);
    va_end(args);
    fprintf(stderr, "usage: dealfs %s %s\n", command->name, command->arguments);
    return COMMAND_USAGE;
}

int command_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(stderr, NULL, format, args);
    va_end(args);
    return COMMAND_FAILED;
}

void command_note(FILE *to, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(to, NULL, format, args);
    va_end(args);
}
