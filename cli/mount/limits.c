/* Keeper and servers inherit the raised limits. Each segment on an SSD needs an open file, so that limit is raised as
 * far as possible. */
#include "cli/mount/limits.h"

#include "fs/base/size.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

static struct limit {
    int resource;
    const char *name, *flag;
    rlim_t least;
    bool bytes, raised;
    struct rlimit before;
} limits[] = {
    {RLIMIT_NOFILE, "open files", "-n", 256, false, false, {0}},
    {RLIMIT_FSIZE, "a file's size", "-f", (rlim_t)2 << 30, true, false, {0}},
    {RLIMIT_AS, "virtual memory", "-v", (rlim_t)4 << 30, true, false, {0}},
    {RLIMIT_STACK, "the stack", "-s", 1 << 20, true, false, {0}},
};

static void raise_one(struct limit *l, const struct rlimit *now)
{
    /* only root may exceed the hard limit */
    rlim_t more = now->rlim_max > l->least ? now->rlim_max : l->least;
    if (setrlimit(l->resource, &(struct rlimit){more, more}) < 0)
        return;
    if (!l->raised)
        l->before = *now;
    l->raised = true;
}

static void add_amount(struct str *out, const struct limit *l, rlim_t amount)
{
    if (l->bytes)
        str_adds(out, size_text(amount));
    else
        str_addf(out, "%ju", (uintmax_t)amount);
}

static void say_low(const struct limit *l, rlim_t now, struct str *why)
{
    str_addf(why, "the limit of %s (ulimit %s) is ", l->name, l->flag);
    add_amount(why, l, now);
    str_adds(why, "; a mount needs ");
    add_amount(why, l, l->least);
}

int limits_raise(struct str *why)
{
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        struct limit *l = &limits[i];
        struct rlimit now;
        if (getrlimit(l->resource, &now) < 0)
            continue;
        if (now.rlim_cur < l->least || (l->resource == RLIMIT_NOFILE && now.rlim_cur < now.rlim_max))
            raise_one(l, &now);
        if (getrlimit(l->resource, &now) < 0 || now.rlim_cur >= l->least)
            continue;
        say_low(l, now.rlim_cur, why);
        return -EINVAL;
    }
    return 0;
}

void limits_restore(void)
{
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].raised)
            setrlimit(limits[i].resource, &limits[i].before);
}
