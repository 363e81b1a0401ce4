/* What `dealfs launch` prints: the commands' output and its own lines. Nothing here blocks: even if the reader of the
 * output pauses (`| less`), `launch` must serve its agents. */
#ifndef CLI_LAUNCH_CONSOLE_H
#define CLI_LAUNCH_CONSOLE_H

#include "cli/launch/channel.h"

struct console {
    struct channel_out out, err; /* standard output and standard error */
    bool drawn;                  /* a progress line is on the terminal */
    bool lost;                   /* a part of standard output could not be written */
    bool dropped;                /* the user is in a hurry: do not wait for readers */
};

void console_init(struct console *c);
/* Writes what can be written at once. Returns `status`, or a failure if a part of standard output was lost. */
int console_fini(struct console *c, int status);

/* Print our own line; `host` may be NULL. */
void console_say(struct console *c, const char *host, const char *text);
/* A line that the next one replaces, if standard error is a terminal. Left out while earlier lines wait. */
void console_progress(struct console *c, const char *text);
void console_clear(struct console *c); /* removes it */
void console_add(struct console *c, struct channel_out *to, const struct str *bytes);

bool console_is_full(const struct console *c);               /* do not read from agents for now */
bool console_waits(const struct console *c);                 /* something is not written yet */
void console_push(struct console *c, struct channel_out *o); /* when poll(2) reports POLLOUT */

#endif
