/* Watches whether a server makes progress. Three faults end it:
 *
 *   fault            observed for as long as the patience
 *   ENDING_STOPPED   its process is stopped, by SIGSTOP or similar
 *   ENDING_STUCK     it serves, and none of its readers returns. Waiting for the source does not count
 *   ENDING_HUNG      it does not serve yet, and its main thread is not on a processor; or it has been opening for
 *                    OPENING_TIMES the patience
 *
 * While a debugger is attached there is no fault. Checks are counted, not time: so if the keeper was frozen together
 * with its server, or the machine slept, no time has passed. */
#ifndef FS_KEEPER_WATCHDOG_H
#define FS_KEEPER_WATCHDOG_H

#include "fs/base/process.h"
#include "fs/wire/endings.h"

enum { OPENING_TIMES = 10 };

struct watchdog {
    unsigned patience; /* milliseconds */
    /* milliseconds since it last made progress; and since it began, if it does not serve yet */
    unsigned silent, opening;
    uint64_t beats, run_time; /* as of the last check */
    uint64_t watched_at;
};

/* Milliseconds since the last call, at most `most`: in a longer pause, the keeper itself may have been stopped. */
unsigned watchdog_time(struct watchdog *watchdog, unsigned most);

/* `ms` since the last check. ENDING_UNSEEN: no fault; else the fault for which to kill it. Logs. */
enum ending_how watchdog_look(struct watchdog *watchdog, const struct process *server, uint64_t beats, unsigned ms);
void watchdog_reset(struct watchdog *watchdog); /* for the next server */

#endif
