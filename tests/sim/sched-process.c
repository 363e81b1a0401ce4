/* Simulated processes. */
#include "tests/sim/sched-inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ID = 1000 };

struct sim_process *sim_process_new(unsigned node, const char *name)
{
    struct sim_process *p = calloc(1, sizeof *p);
    if (!p)
        abort();
    p->node = node;
    p->id = sim.process ? sim.process->id + 1 : FIRST_ID;
    p->next = sim.process;
    snprintf(p->name, sizeof p->name, "%s", name);
    sim.process = p;
    return p;
}

struct sim_process *sim_process_find(int id)
{
    struct sim_process *p = sim.process;
    while (p && p->id != id)
        p = p->next;
    return p;
}

void sim_process_enter(struct sim_process *process)
{
    sim_self->process = process;
}

void sim_process_stop(struct sim_process *process)
{
    sim_log("stop node %u %s", process->node, process->name);
    process->stopped = true;
    if (process == sim_self->home)
        sim_yield();
}

void sim_process_continue(struct sim_process *process)
{
    sim_log("continue node %u %s", process->node, process->name);
    process->stopped = false;
}

void sim_process_kill(struct sim_process *process)
{
    if (process->dead)
        return;
    sim_log("kill node %u %s", process->node, process->name);
    process->dead = true;
    sim_locks_drop(process);
    for (size_t i = sim.threads; i-- > 0;)
        if (sim.thread[i]->home == process)
            sim_thread_remove(sim.thread[i]);
    sim_files_close(process);
    if (process == sim_self->home)
        sim_yield();
}

bool sim_process_is_dead(const struct sim_process *process)
{
    return process->dead;
}

bool sim_process_is_stopped(const struct sim_process *process)
{
    return process->stopped && !process->dead;
}

int sim_process_id(const struct sim_process *process)
{
    return process->id;
}

struct sim_process *sim_process_self(void)
{
    return sim_self->process;
}

unsigned sim_node(void)
{
    return sim_self->process->node;
}

void sim_clock_step(struct sim_process *process, int64_t nanoseconds)
{
    sim_log("step the clock of node %u %s by %lld ms", process->node, process->name,
            (long long)(nanoseconds / 1000000));
    process->clock_step += nanoseconds;
}
