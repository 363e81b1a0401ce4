/* History, findings, and where threads wait.
 *
 * A report shows where each thread waits. Each thread runs for a moment to print its own stack, as addresses, which
 * addr2line translates at the end. */
#include "tests/sim/sched-inside.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LINE = 400, KEPT = 256, FRAMES = 24, REPORT_SECONDS = 30, COMMAND_MOST = 100000 };

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __real_pthread_detach(pthread_t);
int __real_nanosleep(const struct timespec *, struct timespec *);

unsigned sim_patience = 10;

/* --- history: the last lines are kept for a finding --- */

static char kept[KEPT][LINE];
static uint64_t lines;
static bool prints;

void sim_history_begin(bool print)
{
    prints = print;
    lines = 0;
}

static void digest_line(const char *line)
{
    for (; *line; line++)
        sim.digest = (sim.digest ^ (unsigned char)*line) * UINT64_C(0x100000001b3);
}

const char *sim_hidden;

static void hide(char *line)
{
    size_t n = sim_hidden ? strlen(sim_hidden) : 0;
    for (char *at = line; n && (at = strstr(at, sim_hidden));)
        memmove(at, at + n, strlen(at + n) + 1);
}

void sim_logv(const char *format, va_list args)
{
    uint64_t us = (sim.now - SIM_START) / 1000;
    char *line = kept[lines++ % KEPT];
    int n = snprintf(line, LINE, "%3u.%06u node %u %s/%s: ", (unsigned)(us / 1000000), (unsigned)(us % 1000000),
                     sim_self->process->node, sim_self->process->name, sim_self->name);
    vsnprintf(line + n, (size_t)(LINE - n), format, args);
    hide(line + n);
    digest_line(line);
    if (prints)
        dprintf(STDERR_FILENO, "%s\n", line);
}

void sim_log(const char *format, ...)
{
    va_list args;
    if (!sim_is_simulated())
        return;
    va_start(args, format);
    sim_logv(format, args);
    va_end(args);
}

uint64_t sim_digest(void)
{
    return sim.digest;
}

static void print_kept(FILE *to)
{
    uint64_t first = lines > KEPT ? lines - KEPT : 0;
    if (lines && !prints)
        fprintf(to, "the last %u lines of history:\n", (unsigned)(lines - first));
    for (uint64_t i = first; i < lines && !prints; i++)
        fprintf(to, "%s\n", kept[i % KEPT]);
}

/* --- stacks --- */

static FILE *report; /* NULL: none is being made. Frames are lines of their own that begin with 0x */
static char *report_text;
static size_t report_length;

static bool is_ours(const Dl_info *info)
{
    Dl_info mine;
    return dladdr((const void *)&sim, &mine) && info->dli_fbase == mine.dli_fbase;
}

static void print_frames(void *const *frame, int n)
{
    Dl_info info;
    for (int i = 0; i < n; i++)
        if (dladdr(frame[i], &info) && is_ours(&info))
            fprintf(report, "0x%zx\n", (size_t)((const char *)frame[i] - (const char *)info.dli_fbase) - 1);
}

void sim_report_stack(void)
{
    void *frame[FRAMES];
    print_frames(frame, backtrace(frame, FRAMES));
}

static void print_state(const struct sim_thread *t)
{
    fprintf(report, "node %u %s/%s: ", t->home->node, t->home->name, t->name);
    if (t->state == RUNNABLE)
        fprintf(report, "%s%s%s", t == sim_self ? "runs" : "can run", t->what ? ", " : "", t->what ? t->what : "");
    else
        fprintf(report, "waits for %s", t->what);
    const struct sim_thread *owner = t->object ? sim_lock_owner(t->object) : NULL;
    if (owner)
        fprintf(report, " that node %u %s/%s holds", owner->home->node, owner->home->name, owner->name);
    for (nfds_t i = 0; i < t->count; i++)
        fprintf(report, "%s %d", i ? "," : " descriptor", t->fds[i].fd);
    if (t->state == WAITING && t->deadline != SIM_NEVER)
        fprintf(report, ", at most until %.6f s", (double)(t->deadline - SIM_START) / 1e9);
    fprintf(report, "%s\n", t->home->stopped ? "; the process is stopped" : "");
}

static void report_thread(struct sim_thread *t)
{
    print_state(t);
    if (t == sim_self)
        sim_report_stack();
    else if (t->body && !t->hand.started)
        fprintf(report, "(it has not begun)\n");
    else {
        t->report_to = sim_self;
        hand_over(&sim_self->hand, &t->hand);
    }
}

static bool is_frame(const char *line)
{
    return strncmp(line, "0x", 2) == 0;
}

/* Names of all frames in order, as lines "function at file.c:123". */
static FILE *open_names(void)
{
    char *command;
    size_t n;
    FILE *f = open_memstream(&command, &n);
    if (!f)
        return NULL;
    fprintf(f, "addr2line -p -f -s -e /proc/%d/exe 2>/dev/null", (int)syscall(SYS_getpid));
    for (const char *line = report_text; *line; line = strchr(line, '\n') + 1)
        if (is_frame(line) && ftell(f) < COMMAND_MOST)
            fprintf(f, " %.*s", (int)strcspn(line, "\n"), line);
    fclose(f);
    FILE *names = popen(command, "r");
    free(command);
    return names;
}

/* The scheduler's own functions are left out. */
static void print_frame(const char *address, FILE *names)
{
    char name[LINE];
    if (!names || !fgets(name, sizeof name, names))
        fprintf(stderr, "    %.*s\n", (int)strcspn(address, "\n"), address);
    else if (!strstr(name, " at sched") && !strstr(name, " at wrap"))
        fprintf(stderr, "    %s", name);
}

static void report_end(void)
{
    fclose(report);
    report = NULL;
    FILE *names = open_names();
    for (const char *line = report_text; *line; line = strchr(line, '\n') + 1)
        if (is_frame(line))
            print_frame(line, names);
        else
            fprintf(stderr, "%.*s\n", (int)strcspn(line, "\n"), line);
    if (names)
        pclose(names);
    free(report_text);
}

void sim_report(void)
{
    if (report || !(report = open_memstream(&report_text, &report_length)))
        return;
    alarm(REPORT_SECONDS); /* the process may be in any state */
    for (size_t i = 0; i < sim.threads; i++)
        report_thread(sim.thread[i]);
    report_end();
    alarm(0);
}

void sim_fail(const char *format, ...)
{
    va_list args;
    fflush(NULL);
    print_kept(stderr);
    fprintf(stderr, "FOUND with seed %llu at %.6f s by node %u %s/%s: ", (unsigned long long)sim.seed,
            (double)(sim.now - SIM_START) / 1e9, sim_node(), sim_self->process->name, sim_self->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    sim_report();
    _exit(SIM_FOUND);
}

/* --- the watchdog, in real time --- */

static void say_stuck(int signal)
{
    (void)signal;
    alarm(REPORT_SECONDS);
    fprintf(stderr, "FOUND with seed %llu: a thread has reached no switching point for %u s of real time\n",
            (unsigned long long)sim.seed, sim_patience);
    if (!report && (report = open_memstream(&report_text, &report_length))) {
        print_state(sim_self);
        sim_report_stack();
        report_end();
    }
    _exit(SIM_FOUND);
}

static void *watch_for_stuck(void *unused)
{
    uint64_t before = 0;
    for (unsigned still = 0; sim.running; still++) {
        __real_nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        uint64_t now = __atomic_load_n(&sim.now, __ATOMIC_RELAXED);
        if (now != before)
            still = 0;
        before = now;
        if (still == sim_patience)
            hand_signal(&sim.current->hand, SIGUSR2);
    }
    return unused;
}

void sim_watchdog_begin(void)
{
    pthread_t thread;
    signal(SIGUSR2, say_stuck);
    if (__real_pthread_create(&thread, NULL, watch_for_stuck, NULL) == 0)
        __real_pthread_detach(thread);
}
