/* Threads, choice, and virtual time.
 *
 * The running thread calls choose_next at a switching point. Waiting threads whose deadline has passed, whose `ready`
 * holds, or whose descriptors are ready become runnable; one of the runnable ones is drawn. */
#include "tests/sim/sched-inside.h"

#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SWITCH_NS = 400,      /* a switching point takes up to this much virtual time */
    SLUGGISH_ONE_OF = 12, /* threads are sluggish, in half of the seeds */
    ASK_ONE_OF = 8,       /* switching points, the questions of those that wait */
    HEAP_KEEPS = 1 << 30,
    HEAP_STEP = 128 << 10,
    HEAP_MAPS = 256 << 10,
};

struct sim sim;
_Thread_local struct sim_thread *sim_self;
static uint64_t generator;

/* splitmix64 */
static uint64_t random_next(void)
{
    uint64_t z = generator += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t sim_random(uint64_t below)
{
    return (uint64_t)((unsigned __int128)random_next() * below >> 64);
}

uint64_t sim_now(void)
{
    return sim.now;
}

uint64_t sim_switches(void)
{
    return sim.switches;
}

/* --- becoming runnable --- */

/* Threads that are RUNNABLE, that wait for `ready`, for descriptors, and with a deadline: in no order, but in the same
 * one for the same seed. */
struct list {
    struct sim_thread **thread;
    size_t count, room; /* room: sim.room, once it is used */
};
static struct list runnable, asking, polling, timed;
static uint64_t next_due; /* no waiting thread has an earlier deadline */

volatile bool sim_allocates; /* volatile: compilers know that realloc does not look at it */

void *sim_allocate(void *was, size_t n)
{
    sim_allocates = true;
    void *is = realloc(was, n);
    sim_allocates = false;
    if (!is)
        abort();
    return is;
}

static void list_grow(struct list *list)
{
    if (list->room == sim.room)
        return;
    list->room = sim.room;
    list->thread = sim_allocate(list->thread, sim.room * sizeof(struct sim_thread *));
}

static void list_add(struct list *list, struct sim_thread *t)
{
    list->thread[list->count++] = t;
}

static void list_remove(struct list *list, const struct sim_thread *t)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->thread[i] == t) {
            list->thread[i] = list->thread[--list->count];
            return;
        }
}

void sim_wake(struct sim_thread *t)
{
    if (t->state != WAITING)
        return;
    t->state = RUNNABLE;
    if (sim.wait[t->index].deadline != SIM_NEVER)
        list_remove(&timed, t);
    sim.wait[t->index] = (struct sim_wait){.deadline = SIM_NEVER};
    list_add(&runnable, t);
    if (t->ready)
        list_remove(&asking, t);
    if (t->count)
        list_remove(&polling, t);
}

void sim_wake_all(const void *object)
{
    for (size_t i = 0; i < sim.threads; i++)
        if (sim.wait[i].object == object)
            sim_wake(sim.thread[i]);
}

static bool is_any_ready(const struct sim_thread *t)
{
    for (nfds_t i = 0; i < t->count; i++)
        if (fd_ready(t->fds[i].fd, t->fds[i].events))
            return true;
    return false;
}

static void wake_by_descriptors(void)
{
    sim.changed = false;
    for (size_t i = polling.count; i-- > 0;)
        if (is_any_ready(polling.thread[i]))
            sim_wake(polling.thread[i]);
}

static void wake_by_questions(void)
{
    for (size_t i = asking.count; i-- > 0;)
        if (asking.thread[i]->ready(asking.thread[i]->argument))
            sim_wake(asking.thread[i]);
}

static void wake_by_time(void)
{
    if (sim.now < next_due)
        return;
    next_due = SIM_NEVER;
    for (size_t i = timed.count; i-- > 0;) {
        struct sim_thread *t = timed.thread[i];
        uint64_t deadline = sim.wait[t->index].deadline;
        if (deadline <= sim.now) {
            t->late = true;
            sim_wake(t);
        } else if (deadline < next_due)
            next_due = deadline;
    }
}

static size_t find_runnable(struct sim_thread **found)
{
    size_t n = 0;
    for (size_t i = 0; i < runnable.count; i++)
        if (!runnable.thread[i]->home->stopped)
            found[n++] = runnable.thread[i];
    return n;
}

/* Questions take long: they are asked now and then, and when nobody can run. */
static size_t find_woken(struct sim_thread **found)
{
    if (sim.changed)
        wake_by_descriptors();
    wake_by_time();
    size_t n = sim.now % ASK_ONE_OF ? find_runnable(found) : 0;
    if (n)
        return n;
    wake_by_questions();
    return find_runnable(found);
}

static struct sim_thread *draw_thread(struct sim_thread *const *found, size_t n)
{
    struct sim_thread *t = found[sim_random(n)];
    for (int again = 0; t->sluggish && again < 4; again++)
        t = found[sim_random(n)];
    return t;
}

static struct sim_thread *choose_next(void)
{
    static struct list found;
    list_grow(&found);
    sim.now += 1 + sim_random(SWITCH_NS);
    while ((found.count = find_woken(found.thread)) == 0 && next_due != SIM_NEVER)
        sim.now = next_due;
    if (found.count == 0)
        sim_fail("deadlock: no thread can run, and none waits for a time");
    struct sim_thread *t = draw_thread(found.thread, found.count);
    sim.digest = (sim.digest ^ t->number ^ sim.now << 16) * UINT64_C(0x100000001b3);
    return t;
}

/* --- switching --- */

/* sim_self is this thread's again after it. Somebody who reports may have us say where we are. */
static void hand_over_to(struct sim_thread *to)
{
    struct sim_thread *self = sim_self;
    sim.switches++;
    sim.current = to;
    hand_over(&self->hand, &to->hand);
    while (self->report_to) {
        struct sim_thread *reporter = self->report_to;
        self->report_to = NULL;
        sim_report_stack();
        hand_over(&self->hand, &reporter->hand);
    }
}

static void schedule(void)
{
    struct sim_thread *next = choose_next();
    if (next != sim_self)
        hand_over_to(next);
}

void sim_yield(void)
{
    schedule();
}

void sim_pause(const char *why)
{
    if (!sim_is_simulated())
        return;
    sim.now += 20;
    if (sim_random(1024) >= sim.preempt)
        return;
    sim_self->what = why;
    schedule();
    sim_self->what = NULL;
}

void sim_block(const char *what)
{
    struct sim_thread *self = sim_self;
    self->state = WAITING;
    self->late = false;
    sim.wait[self->index] = (struct sim_wait){self->deadline, self->object};
    list_remove(&runnable, self);
    if (self->ready)
        list_add(&asking, self);
    if (self->count)
        list_add(&polling, self);
    if (self->deadline != SIM_NEVER)
        list_add(&timed, self);
    if (self->deadline < next_due)
        next_due = self->deadline;
    self->what = what;
    schedule();
    self->what = NULL;
    self->object = NULL;
    self->ready = NULL;
    self->count = 0;
    self->deadline = SIM_NEVER;
}

void sim_sleep_until(uint64_t deadline, const char *what)
{
    sim_self->deadline = deadline;
    sim_block(what);
}

bool sim_wait(bool (*ready)(void *), void *argument, uint64_t deadline, const char *what)
{
    while (!ready(argument)) {
        if (sim.now >= deadline)
            return false;
        sim_self->ready = ready;
        sim_self->argument = argument;
        sim_self->deadline = deadline;
        sim_block(what);
    }
    return true;
}

void sim_await(bool (*ready)(void *), void *argument, const void *about, const char *what)
{
    while (!ready(argument)) {
        sim_self->object = about;
        sim_block(what);
    }
}

void sim_tell(const void *about)
{
    sim_wake_all(about);
}

bool sim_wait_fds(struct pollfd *fds, nfds_t count, uint64_t deadline, const char *what)
{
    if (sim.now >= deadline)
        return false;
    sim_self->fds = fds;
    sim_self->count = count;
    sim_self->deadline = deadline;
    sim_block(what);
    return !sim_self->late;
}

/* --- threads --- */

struct sim_thread *sim_thread_new(const char *name, struct sim_thread *used)
{
    static unsigned number;
    struct sim_thread *t = used;
    if (!t)
        t = memset(sim_allocate(NULL, sizeof *t), 0, sizeof *t);
    if (sim.threads == sim.room) {
        sim.room = sim.room ? 2 * sim.room : 64;
        sim.thread = sim_allocate(sim.thread, sim.room * sizeof *sim.thread);
        sim.wait = sim_allocate(sim.wait, sim.room * sizeof *sim.wait);
    }
    list_grow(&runnable);
    list_grow(&asking);
    list_grow(&polling);
    list_grow(&timed);
    t->number = number++;
    t->state = RUNNABLE;
    t->detached = false;
    t->deadline = SIM_NEVER;
    t->home = t->process = sim_self ? sim_self->process : sim.process;
    t->sluggish = sim.seed % 2 && t->number > 0 && sim_random(SLUGGISH_ONE_OF) == 0;
    snprintf(t->name, sizeof t->name, "%s", name);
    t->index = sim.threads++;
    sim.thread[t->index] = t;
    sim.wait[t->index] = (struct sim_wait){.deadline = SIM_NEVER};
    list_add(&runnable, t);
    return t;
}

/* It is drawn no more. */
void sim_thread_remove(struct sim_thread *t)
{
    sim.threads--;
    for (size_t i = t->index; i < sim.threads; i++) {
        sim.thread[i] = sim.thread[i + 1];
        sim.thread[i]->index = i;
        sim.wait[i] = sim.wait[i + 1];
    }
    list_remove(&runnable, t);
    list_remove(&asking, t);
    list_remove(&polling, t);
    list_remove(&timed, t);
}

void sim_thread_end(void)
{
    sim_thread_remove(sim_self);
    sim_self->state = FINISHED;
    sim_wake_all(sim_self);
    schedule();
}

/* --- beginning and end --- */

/* On one processor, handing over by futex wakes nobody elsewhere; which one it is is drawn by the parent's children. */
static void stay_on_one_processor(void)
{
    cpu_set_t one;
    int cpu = sched_getcpu();
    CPU_ZERO(&one);
    CPU_SET((size_t)(cpu < 0 ? 0 : cpu), &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* One thread runs at a time, and the process is short: one heap is enough, and gives nothing back. A large table that
 * is used in a few places only is mapped: the heap would have to clear all of it. */
void sim_tune_memory(void)
{
    pthread_attr_t small;
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, HEAP_MAPS);
    mallopt(M_TRIM_THRESHOLD, HEAP_KEEPS);
    mallopt(M_TOP_PAD, HEAP_STEP);
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    pthread_setattr_default_np(&small);
    pthread_attr_destroy(&small);
}

void sim_begin(uint64_t seed, bool history)
{
    static const unsigned preempts[] = {8, 64, 256, 512};
    stay_on_one_processor();
    sim_tune_memory();
    generator = seed;
    next_due = SIM_NEVER;
    sim = (struct sim){.seed = seed, .now = SIM_START, .digest = seed};
    sim.preempt = preempts[sim_random(sizeof preempts / sizeof *preempts)];
    sim_process_new(0, "main");
    sim_self = sim.current = sim_thread_new("main", NULL);
    hand_begin(&sim_self->hand);
    sim_history_begin(history);
    sim.running = true;
    sim_watchdog_begin();
}

void sim_end(void)
{
    sim.running = false;
}
