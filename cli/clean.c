/* `dealfs clean`: removes leftovers of mounts that have ended.
 *
 * Always removed: mounts whose processes are gone, folders in memory, states that were never completed, and what a
 * killed mpirun has left. Only on request: caches, that is, states with a catalog and SSD shards, with which the next
 * mount would start. What is in use is locked. In a folder of another user, root works with that user's rights: so
 * nothing in it can do more than that user could. */
#include "cli/base/options.h"

#include "cli/live/live.h"
#include "cli/mount/leavings.h"
#include "cli/mount/mpirun-left.h"
#include "fs/attach/attach.h"
#include "fs/attach/utab.h"
#include "fs/base/cleanup.h"
#include "fs/base/size.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

/* --- dead mounts --- */

static int clean_mount(void *user, const struct live *live)
{
    struct clean *clean = user;
    CLEANUP_STR struct str why = STR_INIT;
    int error = 0;
    if (live->health != LIVE_DEAD)
        return 0;
    if (!clean->dry_run)
        error = attach_unmount(live->mountpoint, live->minor, true, &why);
    if (!error && !clean->dry_run)
        utab_forget(live->mountpoint);
    if (!error)
        clean_removed(clean, live->mountpoint, "a mount whose processes had ended");
    else
        clean_failed(clean, live->mountpoint, command_why(&why, error));
    return 0;
}

/* --- everything --- */

static int clean_sweep(struct clean *clean)
{
    int error = live_each(clean_mount, clean);
    if (error)
        return error;
    leavings_states(clean);
    leavings_memory(clean);
    mpirun_left_clean(clean);
    return clean->ssd ? leavings_shards(clean, clean->ssd) : 0;
}

static bool clean_asks(const struct clean *clean)
{
    return (clean->caches || clean->ssd) && !clean->yes && !clean->dry_run && isatty(STDIN_FILENO) == 1;
}

/* First list what would be removed, then ask. */
static bool clean_may(const struct clean *clean)
{
    struct clean trial = *clean;
    int answer, first;
    trial.dry_run = true;
    if (clean_sweep(&trial) || trial.caches_removed == 0)
        return true;
    printf("Remove %d %s, %s? [y/N] ", trial.caches_removed, trial.caches_removed == 1 ? "cache" : "caches",
           size_text(trial.bytes));
    fflush(stdout);
    for (first = answer = getchar(); answer != '\n' && answer != EOF;)
        answer = getchar();
    return first == 'y' || first == 'Y';
}

static int clean_all(struct clean *clean)
{
    if (clean_asks(clean) && !clean_may(clean))
        return command_fail("nothing was removed");
    int error = clean_sweep(clean);
    if (error)
        return command_fail("%s: %s", clean->ssd ? clean->ssd : "list the mounts", strerror(-error));
    if (clean->removed == 0 && clean->failed == 0)
        printf("nothing to remove\n");
    if (clean->caches_kept > 0)
        printf("%d %s for later mounts of the same source: --caches removes %s\n", clean->caches_kept,
               clean->caches_kept == 1 ? "state is kept" : "states are kept", clean->caches_kept == 1 ? "it" : "them");
    return clean->failed > 0 ? command_fail("%d could not be removed", clean->failed) : COMMAND_DONE;
}

static int clean_command(int argc, char **argv)
{
    struct clean clean = {.older = UINT64_MAX};
    int status = command_options(&command_clean, &clean, argc, argv);
    if (status)
        return status;
    clean.aged = clean.older != UINT64_MAX;
    if (optind < argc)
        return command_usage(&command_clean, "unexpected argument: %s", argv[optind]);
    clean.caches |= clean.aged && !clean.ssd;
    return clean_all(&clean);
}

#define AT(member) .place = offsetof(struct clean, member)
static const struct command_option clean_options[] = {
    {"dry-run", 'n', OPTION_FLAG, NULL, "only show what would be removed", AT(dry_run)},
    {"caches", 0, OPTION_FLAG, NULL,
     "also remove the caches of unmounted datasets: state directories, and their shards on SSDs", AT(caches)},
    {"ssd", 0, OPTION_TEXT, "DIR", "also remove shards in DIR, even those without a state directory", AT(ssd)},
    {"older", 0, OPTION_TIME, "TIME",
     "only caches that were not used for TIME (7d, 12h); without --ssd it implies --caches", AT(older)},
    {"yes", 'y', OPTION_FLAG, NULL, "do not ask", AT(yes)},
    {0},
};

const struct command command_clean = {
    .name = "clean",
    .arguments = "[-n] [-y] [--caches] [--ssd DIR] [--older TIME]",
    .summary = "remove leftovers of mounts that have ended",
    .options = clean_options,
    .run = clean_command,
};
