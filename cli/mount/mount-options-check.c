/* Which mount options can be combined. */
#include "cli/mount/mount-options.h"

#include "fs/base/hash.h"

#include <errno.h>

static int check_world(const struct mount_options *o, struct str *why)
{
    struct digest digest;
    if (o->wait_join && o->nodes)
        str_adds(why,
                 "options wait_join and nodes: cannot be combined: `dealfs join --nodes N` checks the world's size");
    else if (o->wait_join && o->digest)
        str_adds(why, "options wait_join and digest: cannot be combined: the first world brings the catalog");
    else if (o->digest && digest_parse(o->digest, &digest))
        str_addf(why, "option digest: must be 32 hexadecimal digits, as `dealfs status --json` prints them");
    else if (o->wait_join && o->catalog)
        str_adds(why, "options wait_join and catalog: cannot be combined");
    else if (o->nodes && o->groups > o->nodes)
        str_addf(why, "option groups=%u: more groups than nodes (%u)", o->groups, o->nodes);
    else if (o->quality && !o->resize)
        str_adds(why, "option quality: needs resize=PIXELS");
    else
        return 0;
    return -EINVAL;
}

/* A prediction needs some options; others are only valid with it. */
static int check_sampler(const struct mount_options *o, struct str *why)
{
    const char *alone = o->ranks    ? "ranks"
                        : o->batch  ? "batch"
                        : o->seeded ? "seed"
                        : o->tail   ? "tail"
                        : o->under  ? "under"
                                    : NULL;
    if (!o->sampler && !alone)
        return 0;
    if (!o->sampler)
        str_addf(why, "option %s: needs sampler=torch", alone);
    else if (!o->ranks || !o->batch)
        str_addf(why, "option sampler=torch: needs %s", o->ranks ? "batch=B, of one rank" : "ranks=R, all of the job");
    else if (o->feed == 0)
        str_adds(why, "option sampler=torch: needs feed= above 0");
    else
        return 0;
    return -EINVAL;
}

int options_check(const struct mount_options *o, struct str *why)
{
    if (check_sampler(o, why))
        return -EINVAL;
    if (!o->ssd_size || o->ssd)
        return check_world(o, why);
    return str_fail(why, -EINVAL, "option ssd_size=%s: needs ssd=DIR", o->ssd_size);
}
