/* Machines of any number of processors: sched_getaffinity is ours here. */
#include "fs/base/thread.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

static int machine, ours; /* processors there are, and that we may use */

int sched_getaffinity(pid_t pid, size_t n, cpu_set_t *set)
{
    (void)pid;
    if (machine == 0 || n * 8 < (size_t)machine) {
        errno = machine ? EINVAL : EPERM;
        return -1;
    }
    memset(set, 0, n);
    for (int i = 0; i < ours; i++)
        CPU_SET_S((size_t)(machine - 1 - i), n, set);
    return 0;
}

static void check(int there, int of_them, unsigned expected)
{
    machine = there;
    ours = of_them;
    is_uint(processors_count(), expected, "%d of %d processors", of_them, there);
}

static void test_patient(void)
{
    is_int(sched_getscheduler(0), SCHED_OTHER, "a thread begins with the usual policy");
    thread_set_patient(true);
    is_int(sched_getscheduler(0), SCHED_BATCH, "a patient one preempts nobody");
    thread_set_patient(true);
    is_int(sched_getscheduler(0), SCHED_BATCH, "it stays so");
    thread_set_patient(false);
    is_int(sched_getscheduler(0), SCHED_OTHER, "until it is not patient any more");
    sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
    thread_set_patient(true);
    is_int(sched_getscheduler(0), SCHED_IDLE, "another policy of the user is left as it is");
}

int main(void)
{
    check(2, 2, 2);
    check(1024, 3, 3);
    check(1025, 1025, 1025);
    check(8192, 4000, 4000);
    check(0, 0, 1);
    test_patient();
    return done_testing();
}
