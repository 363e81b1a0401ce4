/* libjpeg ends the process where an error handler returns: here it jumps back instead, and says nothing.
 *
 *   struct escape escape;
 *   codec.err = escape_from(&escape);
 *   if (setjmp(escape.back)) … it has failed */
#ifndef CLI_LAB_ESCAPE_H
#define CLI_LAB_ESCAPE_H

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

struct escape {
    struct jpeg_error_mgr manager; /* first: libjpeg knows only this */
    jmp_buf back;
};

struct jpeg_error_mgr *escape_from(struct escape *escape);

#endif
