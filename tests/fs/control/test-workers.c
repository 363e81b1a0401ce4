/* The budget of requests, and the workers that run them: classes that do not wait for each other, work that nobody
 * wants any more, and the end. */
#include "fs/control/budget.h"
#include "fs/control/workers.h"

#include "tests/lib/tap.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- the budget --- */

static int kept; /* things that can be dropped, of 100 bytes each */
static struct charge keeping[8];

static bool make_room(void *user)
{
    (void)user;
    if (kept == 0)
        return false;
    charge_fini(&keeping[--kept]);
    return true;
}

static void test_budget(void)
{
    struct budget b;
    struct str why = STR_INIT;
    budget_init(&b, 1000, make_room, NULL);
    struct charge own = {.budget = &b}, other = {.budget = &b, .other = true}, none = charge_like(NULL);
    is_int(charge_add(&own, 1001, &why), -ENOMEM, "more than there is");
    is_str(why.data,
           "it takes at least 1001 B of memory, but all requests together may use 1000 B (request_memory=), and 0 B of "
           "that is in use",
           "in words");
    is_uint(b.used, 0, "takes nothing");
    is_int(charge_add(&other, 251, NULL), -ENOMEM, "others have a quarter");
    is_int(charge_add(&other, 250, NULL), 0, "of it");
    is_int(charge_add(&own, 751, NULL), -ENOMEM, "which the owner has not");
    charge_keep(&other);
    is_int(charge_add(&other, 1, NULL), 0, "what is kept is in nobody's hands");
    is_int(charge_add(&none, UINT64_MAX / 2, NULL), 0, "without a budget there is no bound");
    charge_fini(&other);
    for (kept = 0; kept < 8; kept++) {
        keeping[kept] = (struct charge){.budget = &b};
        charge_add(&keeping[kept], 100, NULL);
    }
    is_int(charge_add(&own, 500, NULL), 0, "what is kept gives way");
    is_int(kept, 5, "as far as need be");
    is_int(charge_add(&own, 501, NULL), -ENOMEM, "not for what cannot be");
    is_int(kept, 0, "unless it was in the way of that");
    struct charge taken = charge_take(&own);
    charge_fini(&own);
    is_uint(b.used, 500, "what was taken over is not given back by who had it");
    charge_cut(&taken, 20);
    is_uint(b.used, 20, "a part is");
    charge_fini(&taken);
    is_uint(b.used + b.others, 0, "and the rest");
    str_fini(&why);
    budget_fini(&b);
}

static void *charge_at_random(void *user)
{
    struct charge c = {.budget = user, .other = (uintptr_t)&c & 64};
    for (unsigned i = 0, random = (unsigned)(uintptr_t)&c; i < 20000; i++) {
        random = random * 1103515245 + 12345;
        if (charge_add(&c, random >> 22, NULL) != 0 || random % 5 == 0)
            charge_fini(&c);
        if (random % 7 == 0)
            charge_keep(&c);
    }
    charge_fini(&c);
    return NULL;
}

static void test_together(void)
{
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    struct budget b;
    budget_init(&b, 3000, NULL, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, charge_at_random, &b);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    is_uint(b.used + b.others, 0, "threads leave nothing of it");
    budget_fini(&b);
}

/* --- workers --- */

struct task {
    struct request_work work;
    atomic_bool wanted, may_end;
    atomic_int state;
};
enum { QUEUED, RUNNING, RUN, DROPPED };

static struct task *task_of(struct request_work *work)
{
    return (struct task *)(void *)((char *)work - offsetof(struct task, work));
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void run(struct request_work *work)
{
    struct task *task = task_of(work);
    atomic_store(&task->state, RUNNING);
    while (!atomic_load(&task->may_end))
        nap();
    atomic_store(&task->state, RUN);
}

static void drop(struct request_work *work)
{
    atomic_store(&task_of(work)->state, DROPPED);
}

static bool gave_up(struct request_work *work)
{
    return !atomic_load(&task_of(work)->wanted);
}

static void tick(void *ticks)
{
    atomic_fetch_add((atomic_int *)ticks, 1);
}

static void task_add(struct workers *w, struct task *task, enum work_class class)
{
    memset(task, 0, sizeof *task);
    task->work.class = class;
    atomic_store(&task->wanted, true);
    if (workers_add(w, &task->work) != 0)
        atomic_store(&task->state, DROPPED);
}

static void task_end(struct task *task)
{
    atomic_store(&task->may_end, true);
}

/* Waits for it; who waits in vain is ended by the driver. */
static bool task_is(struct task *task, int state)
{
    while (atomic_load(&task->state) != state)
        nap();
    return true;
}

static void test_classes(void)
{
    struct task plan[4], other[2], quick, turn;
    atomic_int ticks = 0;
    const struct work_rules rules = {.run = run, .drop = drop, .gave_up = gave_up, .tick = tick, .user = &ticks};
    struct workers *w;
    is_int(workers_create(&rules, &w), 0, "workers");
    for (int i = 0; i < 4; i++)
        task_add(w, &plan[i], WORK_LONG);
    ok(task_is(&plan[0], RUNNING) && task_is(&plan[1], RUNNING), "two long ones run");
    task_add(w, &other[0], WORK_OTHERS);
    task_add(w, &other[1], WORK_OTHERS);
    ok(task_is(&other[0], RUNNING), "and one of others beside them");
    task_add(w, &turn, WORK_TURN);
    ok(task_is(&turn, RUNNING), "and one that waits for a turn");
    task_add(w, &quick, WORK_QUICK);
    ok(task_is(&quick, RUNNING), "and a quick one");
    is_int(atomic_load(&plan[2].state) + atomic_load(&other[1].state), 2 * QUEUED, "the rest waits");
    atomic_store(&plan[2].wanted, false);
    ok(task_is(&plan[2], DROPPED), "what nobody wants is dropped while it waits");
    task_end(&plan[1]);
    ok(task_is(&plan[3], RUNNING), "and the next one has its turn");
    int before = atomic_load(&ticks);
    while (atomic_load(&ticks) == before)
        nap();
    pass("while there is work there are ticks");
    for (int i = 0; i < 4; i++)
        task_end(&plan[i]);
    task_end(&quick);
    task_end(&turn);
    task_end(&other[0]);
    ok(task_is(&other[1], RUNNING), "also others, one after the other");
    task_end(&other[1]);
    ok(task_is(&other[1], RUN), "all are done");
    workers_destroy(w);
}

static void test_end(void)
{
    enum { MANY = 40 };
    static struct task task[MANY];
    atomic_int ticks = 0;
    int dropped = 0, refused = 0;
    const struct work_rules rules = {.run = run, .drop = drop, .gave_up = gave_up, .tick = tick, .user = &ticks};
    struct workers *w;
    workers_create(&rules, &w);
    for (int i = 0; i < MANY; i++)
        task_add(w, &task[i], WORK_OTHERS);
    task_is(&task[0], RUNNING);
    for (int i = 0; i < MANY; i++)
        refused += atomic_load(&task[i].state) == DROPPED;
    ok(refused > 0 && refused < MANY - 1, "so many and no more may wait");
    task_end(&task[0]);
    for (int i = 1; i < MANY; i++)
        task_end(&task[i]);
    workers_destroy(w);
    for (int i = 0; i < MANY; i++)
        dropped += atomic_load(&task[i].state) == DROPPED || atomic_load(&task[i].state) == RUN;
    is_int(dropped, MANY, "at the end everything was run or dropped");
}

/* Never ends by itself, but leaves its thread to others, or to the end of the workers. */
static struct workers *shared;
static void run_in_turns(struct request_work *work)
{
    struct task *task = task_of(work);
    atomic_store(&task->state, RUNNING);
    while (!atomic_load(&task->may_end)) {
        if (workers_any_wait(shared, work->class) || workers_stopping(shared)) {
            workers_add_again(shared, work);
            return;
        }
        nap();
    }
    atomic_store(&task->state, RUN);
}

static void test_turns(void)
{
    static struct task slow[2], task;
    atomic_int ticks = 0;
    const struct work_rules rules = {
        .run = run_in_turns, .drop = drop, .gave_up = gave_up, .tick = tick, .user = &ticks};
    workers_create(&rules, &shared);
    task_add(shared, &slow[0], WORK_OTHERS);
    ok(task_is(&slow[0], RUNNING), "one has the only thread");
    task_add(shared, &slow[1], WORK_OTHERS);
    ok(task_is(&slow[1], RUNNING), "it leaves the thread to another one");
    atomic_store(&slow[0].state, QUEUED);
    ok(task_is(&slow[0], RUNNING), "and runs again after that");
    task_add(shared, &task, WORK_OTHERS);
    task_end(&task);
    ok(task_is(&task, RUN), "what comes then is run");
    workers_destroy(shared);
    is_int(atomic_load(&slow[0].state) + atomic_load(&slow[1].state), 2 * DROPPED, "at the end both are dropped");
}

int main(void)
{
    test_turns();
    test_budget();
    test_together();
    test_classes();
    test_end();
    return done_testing();
}
