/* Tests of the scheduler: the same seed gives the same history, and faults are found and reported readably. */
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/thread.h"
#include "fs/wire/message.h"
#include "tests/lib/tap.h"
#include "tests/sim/sched.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
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

/* --- some that work and wait --- */

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

/* --- what it finds --- */

static bool has(const char *words)
{
    return strstr(output, words) || (diag("no \"%s\" in: %s", words, output), false);
}

static void *lock_one_and_two(void *unused)
{
    pthread_mutex_lock(&one);
    pthread_mutex_lock(&two);
    pthread_mutex_unlock(&two);
    pthread_mutex_unlock(&one);
    return unused;
}

static void *lock_two_and_one(void *unused)
{
    pthread_mutex_lock(&two);
    pthread_mutex_lock(&one);
    pthread_mutex_unlock(&one);
    pthread_mutex_unlock(&two);
    return unused;
}

static void invert_locks(void)
{
    start_and_join(lock_one_and_two, lock_two_and_one);
}

static bool ready;

/* It looks without the lock, and another thread may signal before it waits. */
static void *wait_carelessly(void *unused)
{
    if (!ready) {
        pthread_mutex_lock(&one);
        pthread_cond_wait(&changed, &one);
        pthread_mutex_unlock(&one);
    }
    return unused;
}

static void *make_ready(void *unused)
{
    pthread_mutex_lock(&one);
    ready = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&one);
    return unused;
}

static void lose_a_wake_up(void)
{
    start_and_join(wait_carelessly, make_ready);
}

static int question[2], answer[2];

static void *ask_questions(void *unused)
{
    for (eventfd_t i = 1; i <= 10; i++) {
        eventfd_t got;
        eventfd_write(question[0], i);
        eventfd_read(answer[0], &got);
    }
    eventfd_write(question[0], 100);
    return unused;
}

/* A question that comes just when it has answered is forgotten. */
static void *answer_questions(void *unused)
{
    static bool busy;
    for (eventfd_t asked = 0; asked < 100;) {
        eventfd_read(question[0], &asked);
        busy = !busy;
        sim_pause("between two questions");
        if (sim_random(20) != 0)
            eventfd_write(answer[0], 1);
    }
    return unused;
}

static void forget_an_answer(void)
{
    question[0] = eventfd(0, EFD_CLOEXEC);
    answer[0] = eventfd(0, EFD_CLOEXEC);
    start_and_join(ask_questions, answer_questions);
}

static void test_findings(void)
{
    unsigned seed = find(invert_locks);
    ok(seed > 0, "a lock inversion is found with seed %u", seed);
    ok(has("deadlock") && has("waits for a mutex that node 0 main/second holds") &&
           has("lock_one_and_two at test-sched.c"),
       "the report says who waits for whom, and where");
    seed = find(lose_a_wake_up);
    ok(seed > 0, "a lost wake-up is found with seed %u", seed);
    ok(has("main/first: waits for a condition variable") && has("wait_carelessly at test-sched.c"),
       "the report says which condition variable");
    seed = find(forget_an_answer);
    ok(seed > 0, "a forgotten answer is found with seed %u", seed);
    ok(has("main/first: waits for a read of descriptor") && has("ask_questions at test-sched.c"),
       "the report says which descriptor");
}

/* --- time --- */

static void sleep_for_a_day(void)
{
    uint64_t before = clock_now(), real = clock_realtime();
    clock_sleep(86400 * SECOND);
    uint64_t day = clock_now() - before;
    sim_log("slept %s", day >= 86400 * SECOND && day < 86401 * SECOND ? "well" : "badly");
    sim_clock_step(sim_process_self(), -3600 * (int64_t)SECOND);
    real = clock_realtime() - real;
    sim_log("the other clock says %llu hours", (unsigned long long)((real + 60 * SECOND) / (3600 * SECOND)));
}

static void test_time(void)
{
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    is_int(run(1, true, sleep_for_a_day), 0, "a day passes");
    clock_gettime(CLOCK_MONOTONIC, &now);
    ok(now.tv_sec - begun.tv_sec < 5 && has("slept well"), "virtual time jumps");
    ok(has("the other clock says 23 hours"), "CLOCK_REALTIME steps alone");
}

static void *compute_without_end(void *unused)
{
    for (volatile unsigned i = 0;; i++)
        ;
    return unused;
}

static void never_switch(void)
{
    sim_patience = 1;
    start_and_join(compute_without_end, work_in_steps);
}

static void test_watchdog(void)
{
    is_int(run(1, false, never_switch), SIM_FOUND, "a thread that never reaches a switching point is a finding");
    ok(has("node 0 main/first: runs") && has("compute_without_end at test-sched.c"), "the report says where it is");
}

/* --- processes --- */

static unsigned ticks;
static char folder[64];

static void *tick(void *unused)
{
    pthread_mutex_lock(&one);
    for (;;) {
        ticks++;
        clock_sleep(SECOND);
    }
    return unused;
}

static struct sim_process *start_process(const char *name, void *(*body)(void *))
{
    pthread_t thread;
    struct sim_process *before = sim_process_self(), *p = sim_process_new(1, name);
    sim_process_enter(p);
    thread_create(&thread, name, body, NULL);
    sim_process_enter(before);
    return p;
}

static unsigned ticks_in(unsigned seconds)
{
    unsigned before = ticks;
    clock_sleep(seconds * SECOND);
    return ticks - before;
}

static void stop_and_kill(void)
{
    struct sim_process *ticker = start_process("ticker", tick);
    clock_sleep(5 * SECOND);
    kill(sim_process_id(ticker), SIGSTOP);
    sim_log("stopped: %u ticks", ticks_in(10));
    sim_process_continue(ticker);
    sim_log("continued: %s", ticks_in(10) >= 9 ? "ticks" : "none");
    sim_process_kill(ticker);
    sim_log("killed: %u ticks", ticks_in(10));
    pthread_mutex_lock(&one);
    sim_log("its lock is free, it is %s", sim_process_is_dead(ticker) ? "dead" : "alive");
}

static void *serve_one(void *unused)
{
    char byte;
    int listening = message_listen(folder), fd = message_accept(listening);
    struct ucred peer = {0};
    socklen_t n = sizeof peer;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n);
    sim_log("process %d calls", (int)peer.pid);
    ssize_t got = read(fd, &byte, 1);
    sim_log("it said %d bytes", (int)got);
    sim_log("then %d", (int)read(fd, &byte, 1));
    return unused;
}

static void *call_and_wait(void *unused)
{
    int fd;
    while ((fd = message_connect(folder)) < 0)
        clock_sleep(MILLISECOND);
    struct ucred peer = {0};
    socklen_t n = sizeof peer;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n);
    sim_log("called process %d", (int)peer.pid);
    (void)!write(fd, "x", 1);
    clock_sleep(1000 * SECOND);
    return unused;
}

static void call_and_die(void)
{
    start_process("server", serve_one);
    struct sim_process *caller = start_process("caller", call_and_wait);
    clock_sleep(5 * SECOND);
    sim_process_kill(caller);
    clock_sleep(SECOND);
}

static void test_processes(void)
{
    is_int(run(3, true, stop_and_kill), 0, "a process is stopped, continued, killed");
    ok(has("stopped: 0 ticks") && has("continued: ticks") && has("killed: 0 ticks"),
       "its threads run only while they may");
    ok(has("its lock is free, it is dead"), "what it had locked does not stop others");
    snprintf(folder, sizeof folder, "%s", test_directory());
    for (unsigned seed = 1; seed <= 5; seed++) {
        is_int(run(seed, true, call_and_die), 0, "two processes talk, one is killed");
        ok(has("process 1002 calls") && has("called process 1001"), "each knows who the other is");
        ok(has("it said 1 bytes") && has("then 0"), "sockets of a killed process are closed");
    }
}

/* --- speed --- */

enum { ROUNDS = 10000 };

static void *say_first(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        eventfd_t got;
        eventfd_write(question[0], 1);
        eventfd_read(answer[0], &got);
    }
    return unused;
}

static void *say_second(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        eventfd_t got;
        eventfd_read(question[0], &got);
        eventfd_write(answer[0], 1);
    }
    return unused;
}

static void talk_by_eventfd(void)
{
    question[0] = eventfd(0, EFD_CLOEXEC);
    answer[0] = eventfd(0, EFD_CLOEXEC);
    start_and_join(say_first, say_second);
}

static void *pause_often(void *unused)
{
    for (int i = 0; i < ROUNDS * 10; i++)
        clock_sleep(1000);
    return unused;
}

static void sleep_in_turn(void)
{
    start_and_join(pause_often, pause_often);
}

/* For the reader alone: a machine may be slow. */
static void measure(const char *what, void (*body)(void))
{
    struct timespec begun, now;
    unsigned long long switches = 0;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    is_int(run(1, false, body), 0, "%s", what) || (diag("%s", output), 0);
    clock_gettime(CLOCK_MONOTONIC, &now);
    const char *said = strstr(output, ", ");
    sscanf(said ? said : "", ", %llu", &switches);
    double seconds = (double)(now.tv_sec - begun.tv_sec) + (double)(now.tv_nsec - begun.tv_nsec) / 1e9;
    diag("%s: %.0f switches per second", what, (double)switches / seconds);
}

int main(void)
{
#ifdef __SANITIZE_THREAD__
    plan_skip_all("the sanitizer sees no race where one thread runs at a time, and delays signals");
#endif
    test_repeats();
    test_findings();
    test_time();
    test_watchdog();
    test_processes();
    measure("threads that sleep in turn", sleep_in_turn);
    measure("threads that talk by eventfd", talk_by_eventfd);
    return done_testing();
}
