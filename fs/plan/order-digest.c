#include "fs/plan/order-digest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

char *order_digest_format(const struct order_digest *d, char text[ORDER_DIGEST_TEXT])
{
    snprintf(text, ORDER_DIGEST_TEXT, "%016" PRIx64 "-%016" PRIx64 "-%016" PRIx64, d->part[ORDER_SAMPLES],
             d->part[ORDER_WITHOUT], d->part[ORDER_SEQUENCE]);
    return text;
}

int order_digest_parse(const char *text, struct order_digest *d)
{
    char again[ORDER_DIGEST_TEXT];
    if (sscanf(text, "%16" SCNx64 "-%16" SCNx64 "-%16" SCNx64, &d->part[ORDER_SAMPLES], &d->part[ORDER_WITHOUT],
               &d->part[ORDER_SEQUENCE]) != 3)
        return -EINVAL;
    return strcmp(text, order_digest_format(d, again)) == 0 ? 0 : -EINVAL;
}

int order_digest_check(const struct order_digest *is, const struct order_digest *was, struct str *why)
{
    static const char *const what[] = {
        [ORDER_SAMPLES] = "the samples have another path, range or size, or there are more or fewer of them",
        [ORDER_WITHOUT] = "`without` leaves out other samples",
        [ORDER_SEQUENCE] = "epoch, seed, order or echo differ, or, with `echo_at=batch`, ranks times batch",
    };
    const char *join = "`resume`: this is another order than that of the checkpoint: ";
    int error = 0;
    for (int i = 0; i < ORDER_PARTS; i++)
        if (is->part[i] != was->part[i]) {
            str_addf(why, "%s%s", join, what[i]);
            join = "; ";
            error = -ESTALE;
        }
    return error;
}
