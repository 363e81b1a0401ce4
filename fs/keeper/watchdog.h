/* Watches that a server moves. Three faults end it:
 *
 *   fault            what is seen for as long as the patience
 *   ENDING_STOPPED   its process is stopped, by SIGSTOP or the like
 *   ENDING_STUCK     it serves, and none of its readers returns. Waiting for the source does not count
 *   ENDING_HUNG      it does not serve yet, and its main thread is not on a processor; or it opens for OPENING_TIMES
 *                    the patience
 *
 * A server in the hands of a debugger has none. Looks are counted and not time: of a keeper that was frozen together
 * with its server, or whose machine slept, none has passed. */
#ifndef FS_KEEPER_WATCHDOG_H
#define FS_KEEPER_WATCHDOG_H

#include "fs/base/process.h"
#include "fs/wire/endings.h"

enum { OPENING_TIMES = 10 };

struct watchdog {
    unsigned patience;        /* ms */
    unsigned silent, opening; /* ms: since it last moved; since it began, of one that does not serve yet */
    uint64_t beats, run_time; /* when last looked at */
};

/* `ms` since the last look. ENDING_UNSEEN: all is well; else the fault, for which it is to be killed. Logs. */
enum ending_how watchdog_look(struct watchdog *watchdog, const struct process *server, uint64_t beats, unsigned ms);
void watchdog_reset(struct watchdog *watchdog); /* for the next server */

#endif
