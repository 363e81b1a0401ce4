/* See escape.h. */
#include "cli/lab/escape.h"

static void escape_jump(j_common_ptr codec)
{
    longjmp(((struct escape *)(void *)codec->err)->back, 1);
}

static void be_silent(j_common_ptr codec)
{
    (void)codec;
}

struct jpeg_error_mgr *escape_from(struct escape *escape)
{
    jpeg_std_error(&escape->manager);
    escape->manager.error_exit = escape_jump;
    escape->manager.output_message = be_silent;
    return &escape->manager;
}
