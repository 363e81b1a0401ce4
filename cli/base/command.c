/* Messages of subcommands: one line each, with the program's name. */
#include "cli/base/command.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* A path in a message must not begin another line, nor control the terminal. */
static void add_line(struct str *line, const char *text)
{
    for (const char *rest = text; *rest;) {
        size_t n = strcspn(rest, "\n\t");
        str_add_shown(line, rest, n);
        rest += n;
        if (*rest)
            str_addf(line, "\\x%02x", (unsigned)*rest++);
    }
    str_adds(line, "\n");
}

static void command_say(FILE *to, const char *name, const char *format, va_list args)
{
    CLEANUP_STR struct str text = STR_INIT, line = STR_INIT;
    str_addf(&text, "dealfs%s%s: ", name ? " " : "", name ? name : "");
    str_addv(&text, format, args);
    add_line(&line, text.failed ? "" : text.data);
    fputs(text.failed || line.failed ? "dealfs: out of memory\n" : line.data, to);
    fflush(to);
}

int command_usage(const struct command *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    command_say(stderr, command->name, format, args);
    va_end(args);
    fprintf(stderr, "usage: dealfs %s %s\n", command->name, command->arguments);
    return COMMAND_USAGE;
}

int command_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    command_say(stderr, NULL, format, args);
    va_end(args);
    return COMMAND_FAILED;
}

int command_lost(int status)
{
    command_fail("%sstandard output could not be written: part of it is lost",
                 status == COMMAND_DONE ? "the command has succeeded, but " : "");
    return status ? status : COMMAND_FAILED;
}

int command_end(int status)
{
    return fflush(stdout) == 0 && !ferror(stdout) ? status : command_lost(status);
}

const char *command_why(const struct str *why, int error)
{
    return why->failed ? "out of memory" : why->length > 0 ? why->data : strerror(-error);
}

int command_bad_value(const struct str *why)
{
    command_fail("%s", command_why(why, -EINVAL));
    return COMMAND_USAGE;
}

int command_execute(char **words)
{
    enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };
    execvp(words[0], words);
    int error = errno;
    command_fail("run %s: %s", words[0], strerror(error));
    return error == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
}

int command_print(const char *name, const struct str *text)
{
    if (text->failed)
        return command_fail("%s: out of memory", name);
    if (text->length > 0)
        fwrite(text->data, 1, text->length, stdout);
    return COMMAND_DONE;
}

void command_note(FILE *to, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    command_say(to, NULL, format, args);
    va_end(args);
}
