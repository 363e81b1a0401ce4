/* The scheduler: the same seed makes the same history, and what it is there to find is found and said readably. */
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"
#include "tests/lib/tap.h"
#include "tests/sim/sched.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OUTPUT = 1 << 18, SEEDS_MOST = 300 };

static char output[OUTPUT]; /* of the last run */

static void run_child(uint64_t seed, bool history, void (*body)(void))
{
    sim_begin(seed, history);
    body();
    dprintf(STDERR_FILENO, "digest %llx, %llu switches\n", (unsigned long long)sim_digest(),
            (unsigned long long)sim_switches());
    sim_end();
    _exit(0);
}

/* Its exit status; `output` has what it said. */
static int run(uint64_t seed, bool history, void (*body)(void))
{
    int fd[2], status;
    size_t n = 0;
    if (pipe(fd))
        bail_out("pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(fd[1], STDERR_FILENO);
        run_child(seed, history, body);
    }
    close(fd[1]);
    for (ssize_t got; (got = read(fd[0], output + n, sizeof output - 1 - n)) > 0;)
        n += (size_t)got;
    output[n] = '\0';
    close(fd[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The first of these seeds with which something is found; 0: none. */
static unsigned find(void (*body)(void))
{
    for (unsigned seed = 1; seed <= SEEDS_MOST; seed++) {
        int status = run(seed, false, body);
        if (status == SIM_FOUND)
            return seed;
        if (status != 0)
            bail_out("seed %u ends with %d: %s", seed, status, output);
    }
    return 0;
}

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER, two = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;

static void start_and_join(void *(*first)(void *), void *(*second)(void *))
{
    pthread_t thread[2];
    cond_init(&changed);
    thread_create(&thread[0], "first", first, NULL);
    thread_create(&thread[1], "second", second, NULL);
    threads_join(thread, 2);
}

/* Some that work and wait. */

static unsigned done;

static void *work_in_steps(void *unused)
{
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&one);
        done++;
        sim_log("step %d", i);
        pthread_cond_signal(&changed);
        if (i % 7 == 0)
            cond_wait_until(&changed, &one, clock_now() + 3 * MILLISECOND);
        pthread_mutex_unlock(&one);
        if (i % 10 == 0)
            clock_sleep(100 * MILLISECOND);
    }
    return unused;
}

static void work(void)
{
    start_and_join(work_in_steps, work_in_steps);
    sim_log("%u steps", done);
}

static void test_repeats(void)
{
    char before[OUTPUT];
    unsigned same = 0, different = 0;
    for (unsigned seed = 1; seed <= 10; seed++) {
        is_int(run(seed, true, work), 0, "seed %u runs", seed) || (diag("%s", output), 0);
        different += strcmp(before, output) != 0;
        strcpy(before, output);
        run(seed, true, work);
        same += strcmp(before, output) == 0;
    }
    ok(strstr(output, "node 0 main/first: step 49"), "the history names time, process and thread") ||
        (diag("%s", output), 0);
    is_uint(same, 10, "the same seed makes the same history, byte for byte");
    ok(different >= 9, "other seeds make other histories");
}

int main(void)
{
    test_repeats();
    (void)two;
    (void)find;
    return done_testing();
}
