/* Before a server serves, its main thread opens everything that can hang. */
#include "fs/keeper/watchdog.h"

#include "fs/base/clock.h"
#include "fs/base/log.h"

enum { SECOND_MS = 1000 };

unsigned watchdog_time(struct watchdog *w, unsigned most)
{
    uint64_t now = clock_now(), ms = (now - w->watched_at) / MILLISECOND;
    w->watched_at = ms < most ? w->watched_at + ms * MILLISECOND : now;
    return ms < most ? (unsigned)ms : most;
}

/* Without schedstat in the kernel this is unknown, and the server counts as active. */
static bool has_run(struct watchdog *w, const struct process *server)
{
    uint64_t before = w->run_time;
    return process_run_time(server, &w->run_time) || w->run_time != before;
}

static void log_fault(const struct process *server, enum ending_how fault)
{
    log_error("server %d %s: killed", (int)server->id,
              fault == ENDING_STOPPED ? "is stopped"
              : fault == ENDING_STUCK ? "is stuck"
                                      : "hangs before it serves (a disk or the source)");
}

enum ending_how watchdog_look(struct watchdog *w, const struct process *server, uint64_t beats, unsigned ms)
{
    bool stopped = process_is_stopped(server);
    bool moves = beats ? beats != w->beats : has_run(w, server);
    unsigned before = w->silent;
    w->beats = beats;
    w->silent = stopped || !moves ? w->silent + ms : 0;
    w->opening = beats ? 0 : w->opening + ms;
    if (stopped && before < SECOND_MS && w->silent >= SECOND_MS)
        log_warning("server %d is stopped (by SIGSTOP or the like): it is replaced in %u s unless it continues",
                    (int)server->id, (w->patience - w->silent) / SECOND_MS);
    if (w->silent < w->patience && w->opening < OPENING_TIMES * w->patience)
        return ENDING_UNSEEN;
    w->silent = w->opening = 0;
    if (process_is_traced(server->id)) {
        log_warning("server %d does not answer, but a debugger is attached to it: it is not replaced", (int)server->id);
        return ENDING_UNSEEN;
    }
    enum ending_how fault = stopped ? ENDING_STOPPED : beats ? ENDING_STUCK : ENDING_HUNG;
    log_fault(server, fault);
    return fault;
}

void watchdog_reset(struct watchdog *w)
{
    *w = (struct watchdog){.patience = w->patience, .watched_at = w->watched_at};
}
