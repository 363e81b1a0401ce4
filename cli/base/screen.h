/* A terminal that a command draws on, and reads keys from, until it ends in whatever way: then it is as it was. */
#ifndef CLI_BASE_SCREEN_H
#define CLI_BASE_SCREEN_H

#include "fs/base/str.h"

#include <stdbool.h>

/* -ENOTTY: standard input and output are not both terminals. Nothing is drawn before screen_draw. */
int screen_begin(void);
void screen_end(void);
struct screen_size {
    unsigned columns, rows;
};
struct screen_size screen_size(void);
void screen_draw(const struct str *text); /* lines, from the top; what does not fit is left out */
/* The next key, or 0 when none comes in time or a signal does; -EIO: the terminal is gone. */
int screen_key(int milliseconds);
/* Between: the terminal is as it was; after SIGCONT it is drawn on again. */
void screen_stop(void);

#endif
