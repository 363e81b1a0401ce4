/* What `dealfs launch` prints: the commands' output and its own lines. Nothing here blocks: a reader that pauses (`|
 * less`) must not keep `launch` from its agents. */
#ifndef CLI_LAUNCH_CONSOLE_H
#define CLI_LAUNCH_CONSOLE_H

#include "cli/launch/channel.h"

struct console {
    struct channel_out out, err; /* standard output and standard error */
    bool drawn;                  /* a line of progress stands on the terminal */
    bool dropped;                /* the user is in a hurry: what nobody reads is not waited for */
};

void console_init(struct console *c);
void console_fini(struct console *c); /* writes what can still be written at once */

/* A line of ours; `host` may be NULL. */
void console_say(struct console *c, const char *host, const char *text);
/* A line that the next one replaces, if standard error is a terminal. Left out while earlier lines wait. */
void console_progress(struct console *c, const char *text);
void console_clear(struct console *c); /* removes it */
void console_add(struct console *c, struct channel_out *to, const struct str *bytes);

bool console_is_full(const struct console *c); /* read nothing more from agents for the moment */
bool console_waits(const struct console *c);   /* something is not written yet */
void console_push(struct channel_out *o);      /* when poll(2) says POLLOUT */

#endif
