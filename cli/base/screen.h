/* A terminal on which a command draws, and from which it reads keys. However the command ends, the terminal is
 * restored. */
#ifndef CLI_BASE_SCREEN_H
#define CLI_BASE_SCREEN_H

#include "fs/base/str.h"

/* -ENOTTY: standard input or output is not a terminal. Nothing is drawn before screen_draw. */
int screen_begin(void);
void screen_end(void);
struct screen_size {
    unsigned columns, rows;
};
struct screen_size screen_size(void);
void screen_draw(const struct str *text); /* lines, from the top; what does not fit is left out */
/* The next key; 0: none within the time, or a signal; -EIO: the terminal is gone. */
int screen_key(int milliseconds);
/* For suspension: restores the terminal; after SIGCONT drawing continues. */
void screen_stop(void);

#endif
