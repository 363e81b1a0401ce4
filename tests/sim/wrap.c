/* Clocks, chance, process numbers; and functions of the product that look at processes or write the log. */
#include "fs/base/log.h"
#include "fs/base/process.h"
#include "fs/wire/ring.h"
#include "tests/sim/sched-inside.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>

#define MICROSECOND UINT64_C(1000)
#define TODAY (UINT64_C(1700000000) * SIM_SECOND) /* CLOCK_REALTIME when a run begins */

enum { PROCESSORS = 2, LOOK_NS = 20 };

/* --- clocks --- */

static uint64_t realtime(void)
{
    return sim.now - SIM_START + TODAY + (uint64_t)sim_self->process->clock_step;
}

/* Reading the clock takes time: a loop that waits for the clock ends. */
WRAP(int, clock_gettime, clockid_t clock, struct timespec *t)
{
    if (!sim_is_simulated())
        return __real_clock_gettime(clock, t);
    sim.now += LOOK_NS;
    uint64_t now = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ? realtime() : sim.now;
    *t = (struct timespec){(time_t)(now / SIM_SECOND), (long)(now % SIM_SECOND)};
    return 0;
}

WRAP(int, gettimeofday, struct timeval *t, void *zone)
{
    if (!sim_is_simulated())
        return __real_gettimeofday(t, zone);
    uint64_t now = realtime();
    *t = (struct timeval){(time_t)(now / SIM_SECOND), (suseconds_t)(now % SIM_SECOND / MICROSECOND)};
    return 0;
}

WRAP(time_t, time, time_t *to)
{
    if (!sim_is_simulated())
        return __real_time(to);
    time_t now = (time_t)(realtime() / SIM_SECOND);
    if (to)
        *to = now;
    return now;
}

WRAP(int, nanosleep, const struct timespec *duration, struct timespec *left)
{
    if (!sim_is_simulated())
        return __real_nanosleep(duration, left);
    sim_sleep_until(sim.now + (uint64_t)duration->tv_sec * SIM_SECOND + (uint64_t)duration->tv_nsec, "a sleep");
    return 0;
}

/* A thread that yields in a loop waits for another one. A few microseconds keep the number of turns small. */
WRAP(int, sched_yield, void)
{
    if (!sim_is_simulated())
        return __real_sched_yield();
    sim_sleep_until(sim.now + (5 + sim_random(20)) * MICROSECOND, "its turn");
    return 0;
}

WRAP(unsigned, processors_count, void)
{
    return sim_is_simulated() ? PROCESSORS : __real_processors_count();
}

/* --- chance --- */

WRAP(ssize_t, getrandom, void *to, size_t n, unsigned flags)
{
    if (!sim_is_simulated())
        return __real_getrandom(to, n, flags);
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)to)[i] = (unsigned char)sim_random(256);
    return (ssize_t)n;
}

/* --- processes --- */

WRAP(pid_t, getpid, void)
{
    return sim_is_simulated() ? sim_self->process->id : __real_getpid();
}

static int send_signal(struct sim_process *p, int signal)
{
    if (!p || p->dead)
        return ESRCH;
    if (signal == SIGKILL)
        sim_process_kill(p);
    else if (signal == SIGSTOP)
        sim_process_stop(p);
    else if (signal == SIGCONT)
        sim_process_continue(p);
    else if (signal)
        return EINVAL;
    return 0;
}

WRAP(int, kill, pid_t id, int signal)
{
    if (!sim_is_simulated())
        return __real_kill(id, signal);
    errno = send_signal(sim_process_find(id), signal);
    return errno ? -1 : 0;
}

WRAP(int, process_watch, pid_t id, struct process *p)
{
    if (!sim_is_simulated())
        return __real_process_watch(id, p);
    struct sim_process *found = sim_process_find(id);
    if (!found || found->dead)
        return -ESRCH;
    *p = (struct process){id, -1, -1};
    return 0;
}

WRAP(bool, process_is_dead, const struct process *p)
{
    if (!sim_is_simulated())
        return __real_process_is_dead(p);
    const struct sim_process *found = sim_process_find(p->id);
    return !found || found->dead;
}

WRAP(bool, process_is_stopped, const struct process *p)
{
    if (!sim_is_simulated())
        return __real_process_is_stopped(p);
    const struct sim_process *found = sim_process_find(p->id);
    return found && sim_process_is_stopped(found);
}

WRAP(bool, process_is_gone, pid_t id)
{
    if (!sim_is_simulated())
        return __real_process_is_gone(id);
    const struct sim_process *found = sim_process_find(id);
    return !found || found->dead;
}

WRAP(int, process_kill, const struct process *p)
{
    return sim_is_simulated() ? -send_signal(sim_process_find(p->id), SIGKILL) : __real_process_kill(p);
}

/* --- the product --- */

WRAP(int, ring_push, struct ring_queue *queue, int bell, const struct ring_message *message)
{
    sim_pause("to push into a ring");
    return __real_ring_push(queue, bell, message);
}

WRAP(int, ring_take, struct ring_queue *queue, struct ring_message *message)
{
    sim_pause("to take from a ring");
    return __real_ring_take(queue, message);
}

static const char *const level_names[] = {"error", "warning", "info", "debug"};

/* Lines of the product's log are lines of history. */
__attribute__((format(printf, 2, 3))) WRAP(void, log_line, enum log_level level, const char *format, ...)
{
    char line[512];
    va_list args;
    int saved = errno;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (sim_is_simulated())
        sim_log("%s: %s", level_names[level], line);
    else
        fprintf(stderr, "%s: %s\n", level_names[level], line);
    errno = saved;
}
