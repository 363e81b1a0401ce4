/* `upgrade`: the keeper replaces this server with the installed program (fs/keeper/program.h), if that is another one.
 * If this server is the installed program and on trial, the upgrade has begun already.
 * The reply only confirms the request; `program` in `status` shows the result. */
#include "fs/control/control-private.h"
#include "fs/control/verbs.h"

#include "fs/wire/handover.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

static bool runs_installed(void)
{
    char path[PATH_MAX];
    struct stat mine, installed;
    return handover_find_program("dealfs-server", path, sizeof path) == 0 && stat(path, &installed) == 0 &&
           stat("/proc/self/exe", &mine) == 0 && mine.st_dev == installed.st_dev && mine.st_ino == installed.st_ino;
}

static int upgrade_run(struct control *control, const struct request *request, const struct asker *asker)
{
    struct handover *handover = control->config.handover;
    (void)request;
    if (!handover || (asker->charge && asker->charge->other))
        return str_fail(asker->why, -EPERM, "only the mount's owner may upgrade it");
    uint32_t state = atomic_load(&handover->program);
    bool installed = runs_installed();
    /* a trial of another program than the installed one must not be taken for this upgrade */
    while (!installed && !atomic_compare_exchange_strong(&handover->program, &state, PROGRAM_ASKED))
        ;
    str_adds(asker->reply, installed && state != PROGRAM_TRIAL ? "current\n" : "begun\n");
    return 0;
}

static const struct key no_keys[] = {{0}};

const struct verb verb_upgrade = {
    .name = "upgrade",
    .about = "replace the server by the installed program; reply: `begun` or `current`",
    .keys = no_keys,
    .run = upgrade_run,
};
