/* Faults at the stages of a turn and of the move after it (fs/base/halt.h): most turns are over in a millisecond, which
 * a fault at a random time rarely meets. */
#include "tests/sim/halts.h"

#include "fs/base/clock.h"
#include "tests/sim/faults.h"

enum { WAIT_S = 10, SKIP_OF = 3 };

static struct {
    struct sim_process *process; /* to be stopped at a stage; NULL: none */
    bool stopped;
} halt;

void __wrap_halt_at(const char *point);
void __wrap_halt_at(const char *point)
{
    if (!halt.process || sim_process_self() != halt.process || sim_random(SKIP_OF) == 0)
        return;
    sim_log("fault: at a stage of a turn: %s", point);
    halt.process = NULL;
    halt.stopped = true;
    sim_process_stop(sim_process_self());
}

static bool has_stopped(void *unused)
{
    (void)unused;
    return halt.stopped || faults_ended();
}

void halts_await(struct sim_node *n, struct sim_process *process, void (*fault)(struct sim_node *))
{
    halt.process = process;
    halt.stopped = false;
    sim_wait(has_stopped, NULL, sim_now() + WAIT_S * SECOND, "a stage of a turn");
    halt.process = NULL;
    if (!halt.stopped)
        return;
    effects[EFFECT_HALTED]++;
    sim_process_continue(process); /* and nothing of it runs before the fault */
    fault(n);
}
