/* Implements console.h. */
#include "cli/launch/console.h"

#include "cli/base/command.h"
#include "fs/base/ready.h"

#include <string.h>
#include <unistd.h>

void console_init(struct console *c)
{
    *c = (struct console){.out.fd = 1, .err.fd = 2};
}

static void outlet_fini(struct channel_out *o)
{
    struct pollfd ready = {.fd = o->fd, .events = POLLOUT};
    while (outlet_waits(o) && ready_wait(&ready, 1, 0) == 1 && outlet_push(o) == 0)
        continue;
    str_fini(&o->data);
}

int console_fini(struct console *c, int status)
{
    outlet_fini(&c->out);
    outlet_fini(&c->err);
    return c->lost ? command_lost(status) : status;
}

void console_clear(struct console *c)
{
    if (c->drawn)
        str_adds(&c->err.data, "\r\033[K");
    c->drawn = false;
}

void console_say(struct console *c, const char *host, const char *text)
{
    CLEANUP_STR struct str line = STR_INIT;
    if (host)
        str_addf(&line, "%s: ", host);
    str_add_shown(&line, text, strlen(text));
    str_adds(&line, "\n");
    console_add(c, &c->err, &line);
}

void console_progress(struct console *c, const char *text)
{
    bool terminal = isatty(c->err.fd);
    if (outlet_waits(&c->err))
        return;
    console_clear(c);
    str_addf(&c->err.data, "%s%s", text, terminal ? "" : "\n");
    c->drawn = terminal;
}

void console_add(struct console *c, struct channel_out *to, const struct str *bytes)
{
    if (c->dropped && outlet_is_full(to))
        return;
    console_clear(c);
    str_add(&to->data, bytes->data, bytes->length);
}

bool console_is_full(const struct console *c)
{
    return !c->dropped && (outlet_is_full(&c->out) || outlet_is_full(&c->err));
}

bool console_waits(const struct console *c)
{
    return !c->dropped && (outlet_waits(&c->out) || outlet_waits(&c->err));
}

/* Output is lost if nobody reads any more, or a disk is full. */
void console_push(struct console *c, struct channel_out *o)
{
    if (outlet_push(o)) {
        str_fini(&o->data);
        o->sent = 0;
        c->lost |= o == &c->out;
    }
}
