/* One thread waits for the channel, for signals and for output:
 *
 *   launch ══channel══ agent ─┬─ dealfs mount -f    until SIGHUP, or until the agent has died
 *                             ├─ dealfs stage
 *                             └─ the command, and the processes that it leaves behind
 *
 * The mount ignores SIGTERM and SIGINT, so that a signal to all processes of the job (scancel) does not end it: the
 * command must be able to read while it saves a checkpoint. */
#include "cli/launch/agent.h"

#include "cli/base/command.h"
#include "cli/base/place.h"
#include "cli/launch/agent-tasks.h"
#include "cli/launch/channel.h"
#include "cli/live/client.h"
#include "cli/live/figures.h"
#include "cli/mount/unmount.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/process.h"
#include "fs/base/ready.h"
#include "fs/base/size.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

enum {
    LOOK_MS = 500,           /* between checks of the mount's world, until the command runs */
    LOOK_RUNNING_MS = 10000, /* and while it runs */
    DRAIN_MS = 2000,         /* for output of processes that the command has left behind */
    UMOUNT_MS = 20000,       /* for the mount to end */
    LAST_MS = 10000,         /* at the end, for `launch` to read more output */
    KILL_MS = 3000,          /* after SIGKILL: a process that waits in the kernel may not end */
};
enum { BURY_SECONDS = 30 };

enum agent_state { AGENT_LIVES, AGENT_ENDS_COMMAND, AGENT_ENDS_REST, AGENT_ENDS_MOUNT, AGENT_ENDED };

struct agent {
    struct channel launch;
    struct str text; /* of the job */
    struct tasks tasks;
    int signals;
    enum agent_state state;
    uint64_t deadline;  /* of the state */
    uint64_t look;      /* time of the next check of the world */
    bool command_ended; /* its status was not sent yet: there may be more output */
    int status;
    uint64_t drained;
};

/* --- the end --- */

static uint64_t in_ms(unsigned ms)
{
    return clock_now() + ms * MILLISECOND;
}

/* The command gets SIGTERM and time to end; with `now`, neither. */
static void end_agent(struct agent *a, bool now)
{
    if (a->state > AGENT_ENDS_COMMAND || (a->state == AGENT_ENDS_COMMAND && !now))
        return;
    a->state = AGENT_ENDS_COMMAND;
    a->deadline = in_ms(now ? 0 : a->tasks.job.grace * 1000);
    tasks_signal(&a->tasks, now ? SIGKILL : SIGTERM);
}

static bool command_is_over(struct agent *a)
{
    return !a->tasks.command && !a->tasks.stage && !a->command_ended;
}

static void next_state(struct agent *a, enum agent_state state, unsigned ms)
{
    a->state = state;
    a->deadline = in_ms(ms);
    if (state == AGENT_ENDS_MOUNT && a->tasks.mount)
        kill(a->tasks.mount, SIGHUP);
}

/* Each step of the end has a deadline, then kills, then waits for KILL_MS. A command that waits in the kernel for the
 * mount ends with the mount. */
static void step_end(struct agent *a)
{
    bool late = clock_now() >= a->deadline, lost = clock_now() >= a->deadline + KILL_MS * MILLISECOND;
    if (a->state == AGENT_ENDS_COMMAND) {
        if (late)
            tasks_signal(&a->tasks, SIGKILL);
        if (command_is_over(a) || lost)
            next_state(a, AGENT_ENDS_REST, KILL_MS);
    } else if (a->state == AGENT_ENDS_REST) {
        /* the keeper of a mount whose process was killed is among them, and unmounts meanwhile */
        int rest = remains_signal(a->tasks.remains, a->tasks.mount || late ? SIGKILL : 0);
        if (rest == 0 || late)
            next_state(a, AGENT_ENDS_MOUNT, UMOUNT_MS);
    } else if (a->state == AGENT_ENDS_MOUNT) {
        if (late && a->tasks.mount)
            kill(a->tasks.mount, SIGKILL);
        if ((!a->tasks.mount && remains_signal(a->tasks.remains, SIGKILL) == 0) || lost)
            a->state = AGENT_ENDED;
    }
}

static void fail_job(struct agent *a, int status, const char *why)
{
    channel_sayf(&a->launch, SAY_FAILED, "%d %s", status, why);
}

/* --- messages from `launch` --- */

static void take_job(struct agent *a, const struct str *payload)
{
    CLEANUP_STR struct str why = STR_INIT;
    int status = COMMAND_FAILED;
    str_add(&a->text, payload->data, payload->length);
    int error = a->text.failed ? -ENOMEM : tasks_begin(&a->tasks, &a->text, &why, &status);
    if (error)
        fail_job(a, status, command_why(&why, error));
}

static void take_message(struct agent *a, int message, const struct str *payload)
{
    CLEANUP_STR struct str why = STR_INIT;
    uint64_t number;
    int error = 0;
    /* messages that arrive after the end has begun were sent before `launch` knew of it */
    if (a->state != AGENT_LIVES && message != SAY_SIGNAL && message != SAY_END)
        return;
    if (message == SAY_JOB)
        take_job(a, payload);
    else if (message == SAY_STAGE)
        error = tasks_stage(&a->tasks, &why);
    else if (message == SAY_COMMAND)
        error = tasks_command(&a->tasks, payload->data, &why);
    else if (message == SAY_SIGNAL && number_parse(payload->data, 1, 64, &number) == 0)
        tasks_signal(&a->tasks, (int)number);
    else if (message == SAY_END)
        end_agent(a, strcmp(payload->data, "now") == 0);
    if (error)
        fail_job(a, COMMAND_FAILED, command_why(&why, error));
}

static void read_channel(struct agent *a)
{
    CLEANUP_STR struct str payload = STR_INIT, noise = STR_INIT;
    int message;
    if (channel_read(&a->launch))
        a->launch.ended = true;
    while ((message = channel_take(&a->launch, &payload, &noise)))
        take_message(a, message, &payload);
}

/* --- children --- */

/* The line reports that the mount is live. */
static void take_mount_line(void *user, const char *line)
{
    struct agent *a = user;
    CLEANUP_STR struct str place = STR_INIT;
    command_note(stderr, "%s", line);
    if (a->tasks.mounted || !strstr(line, " is mounted on "))
        return;
    a->tasks.mounted = true;
    tasks_add_place(&a->tasks, &place);
    channel_say(&a->launch, SAY_MOUNTED, place.data, place.length);
}

static void take_output(void *user, enum task_output from, const char *bytes, size_t n)
{
    struct agent *a = user;
    channel_say(&a->launch, from == OUTPUT_OF_COMMAND ? SAY_OUTPUT : SAY_ERRORS, bytes, n);
}

static void reap(struct agent *a)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (pid == a->tasks.mount) {
            a->tasks.mount = a->tasks.remains->mount = 0;
            if (a->state == AGENT_LIVES)
                fail_job(a, COMMAND_FAILED, a->tasks.mounted ? "the mount has ended" : "");
        } else if (pid == a->tasks.stage) {
            a->tasks.stage = 0;
            channel_sayf(&a->launch, SAY_STAGE, "%d", code);
        } else if (pid == a->tasks.command) {
            a->tasks.command = 0;
            a->command_ended = true;
            a->status = code;
            a->drained = in_ms(DRAIN_MS);
        }
    }
}

/* Processes that the command has left behind may write for a while. */
static void finish_command(struct agent *a)
{
    if (!a->command_ended || (tasks_have_output(&a->tasks) && clock_now() < a->drained))
        return;
    a->command_ended = false;
    channel_sayf(&a->launch, SAY_COMMAND, "%d", a->status);
}

/* A status that cannot be read does not say that the world has ended: another world would replace it. */
static void look_at_world(struct agent *a)
{
    CLEANUP_STR struct str why = STR_INIT, status = STR_INIT;
    CLEANUP_LIVE struct live live = {0};
    uint64_t nodes;
    if (!a->tasks.mounted || a->tasks.job.nodes < 2 || a->state != AGENT_LIVES || clock_now() < a->look)
        return;
    if (live_find(a->tasks.mountpoint, &live, &why) == 0 && live.control && live.health != LIVE_DEAD &&
        client_file(&live, "status", &status) == 0) {
        nodes = figures_is(&status, "state", "joined") ? figures_number(&status, "nodes") : 0;
        channel_sayf(&a->launch, SAY_WORLD, "%" PRIu64, nodes);
    }
    a->look = in_ms(a->tasks.command ? LOOK_RUNNING_MS : LOOK_MS);
}

/* --- the loop --- */

/* A scheduler sends SIGTERM before SIGKILL. SIGHUP: the parent has died. */
static void take_signals(struct agent *a)
{
    struct signalfd_siginfo info;
    while (read(a->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGCHLD)
            end_agent(a, false);
    }
    reap(a);
}

enum { POLLED = 6 };

static void wait_for_events(struct agent *a)
{
    struct channel *c = &a->launch;
    bool full = outlet_is_full(&c->out);
    struct pollfd fds[POLLED] = {
        {.fd = c->ended ? -1 : c->in, .events = POLLIN},
        {.fd = outlet_waits(&c->out) ? c->out.fd : -1, .events = POLLOUT},
        {.fd = a->signals, .events = POLLIN},
        {.fd = a->tasks.said, .events = POLLIN},
        {.fd = full ? -1 : a->tasks.output[0], .events = POLLIN},
        {.fd = full ? -1 : a->tasks.output[1], .events = POLLIN},
    };
    bool hurry = a->state != AGENT_LIVES || a->command_ended;
    if (ready_wait(fds, POLLED, hurry ? 20 : CHANNEL_TICK_MS) <= 0)
        return;
    if (fds[3].revents)
        tasks_read_mount(&a->tasks, take_mount_line, a);
    for (int i = 0; i < 2; i++)
        if (fds[4 + i].revents)
            tasks_read_output(&a->tasks, (enum task_output)i, take_output, a);
    if (fds[0].revents)
        read_channel(a);
    if (fds[1].revents && outlet_push(&c->out)) {
        c->ended = true;
        str_clear(&c->out.data);
        c->out.sent = 0;
    }
    if (fds[2].revents)
        take_signals(a);
}

/* Only a mount that nobody serves: another job may have mounted there since. One that hangs without a keeper is in the
 * way of the next job as well, and nobody else removes it. */
static bool may_take(const struct live *live)
{
    switch (live->health) {
    case LIVE_UP:
    case LIVE_ELSEWHERE:
    case LIVE_UNKNOWN:
        break;
    case LIVE_HUNG:
        return !live->keeper;
    case LIVE_DEAD:
        return true;
    }
    return false;
}

/* If all processes of the mount were killed, it is left dead. False: it is still there. */
static bool take_dead_mount(struct agent *a)
{
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_LIVE struct live live = {0};
    if (!a->tasks.mounted)
        return true;
    int error = live_find(a->tasks.mountpoint, &live, &why);
    if (error == -ENOENT || (!error && live.health < LIVE_UNKNOWN))
        return true; /* another job may have mounted there since */
    if (!error && !may_take(&live))
        error = str_fail(&why, -EBUSY, "%s: %s", live.mountpoint, live_health_text(live.health));
    if (!error)
        error = unmount_live(&live, true, &why);
    if (error)
        command_note(stderr, "%s", command_why(&why, error));
    return !error || error == -ETIMEDOUT; /* its processes have not ended */
}

static void run_agent(struct agent *a)
{
    while (a->state != AGENT_ENDED) {
        wait_for_events(a);
        finish_command(a);
        look_at_world(a);
        bool heard = channel_tick(&a->launch, true) || a->tasks.direct;
        if (a->state == AGENT_LIVES && (a->launch.ended || !heard))
            end_agent(a, false);
        step_end(a);
    }
    bool gone = take_dead_mount(a);
    remains_remove_folders(a->tasks.remains);
    if (!gone)
        command_note(stderr, "%s is still mounted", a->tasks.mountpoint);
    else if (!a->tasks.mount && remains_signal(a->tasks.remains, 0) == 0)
        channel_say(&a->launch, SAY_GONE, "", 0);
    else
        command_note(stderr, "processes of the job do not end after SIGKILL: they wait for a disk or a network");
    struct pollfd ready = {.fd = a->launch.out.fd, .events = POLLOUT};
    while (!a->launch.ended && outlet_waits(&a->launch.out) && ready_wait(&ready, 1, LAST_MS) > 0 &&
           outlet_push(&a->launch.out) == 0)
        continue;
}

/* A copy of the other end of a channel would keep it open. */
static void close_others(int in, int out)
{
    unsigned low = (unsigned)(in < out ? in : out), high = (unsigned)(in < out ? out : in);
    if (low > 3)
        close_range(3, low - 1, 0);
    if (high > low + 1)
        close_range(low + 1, high - 1, 0);
    close_range(high + 1, ~0U, 0);
}

static _Noreturn void become_agent(struct remains *remains, pid_t parent, int in, int out, bool direct)
{
    struct agent a = {.tasks.remains = remains};
    sigset_t set;
    tasks_init(&a.tasks, direct);
    close_others(in, out);
    prctl(PR_SET_PDEATHSIG, SIGHUP);
    process_reset_signals();
    signal(SIGINT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    a.signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    remains_adopt();
    channel_init(&a.launch, in, out);
    channel_greet(&a.launch);
    a.launch.ended = getppid() != parent;
    run_agent(&a);
    tasks_fini(&a.tasks);
    channel_fini(&a.launch);
    str_fini(&a.text);
    _exit(COMMAND_DONE);
}

/* --- the agent's parent --- */

int agent_start(struct agent_process *agent, int in, int out, bool direct)
{
    pid_t parent = getpid();
    *agent = (struct agent_process){.remains = remains_new()};
    if (!agent->remains)
        return -ENOMEM;
    remains_adopt();
    fflush(NULL);
    agent->pid = fork();
    if (agent->pid == 0)
        become_agent(agent->remains, parent, in, out, direct);
    return agent->pid < 0 ? -errno : 0;
}

/* The `dealfs mount -f` of a killed agent ends by its own signal (PR_SET_PDEATHSIG); other processes are killed. If it
 * was killed itself, they have time first, because its keeper is among them and unmounts. */
static void bury(struct agent_process *agent)
{
    uint64_t now = clock_now(), deadline = now + BURY_SECONDS * SECOND, spare = now;
    struct remains *r = agent->remains;
    while ((remains_signal(r, now >= spare ? SIGKILL : 0) != 0 || r->mount) && now < deadline) {
        int status;
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
            if (pid != r->mount)
                continue;
            r->mount = 0;
            spare = WIFSIGNALED(status) ? in_ms(KILL_MS) : now;
        }
        clock_sleep(20 * MILLISECOND);
        now = clock_now();
    }
    remains_remove_folders(r);
}

void agent_end(const struct agent_process *agent, uint64_t deadline)
{
    siginfo_t info = {0};
    while (waitid(P_PID, (id_t)agent->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && !info.si_pid &&
           clock_now() < deadline)
        clock_sleep(10 * MILLISECOND);
    kill(agent->pid, SIGKILL);
}

void agent_finish(struct agent_process *agent)
{
    int status = 0;
    while (waitpid(agent->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFSIGNALED(status))
        bury(agent);
    remains_free(agent->remains);
    agent->remains = NULL;
}

int agent_main(void)
{
    struct agent_process agent;
    int in = fcntl(0, F_DUPFD_CLOEXEC, 3), out = fcntl(1, F_DUPFD_CLOEXEC, 3);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (in < 0 || out < 0 || null < 0 || dup2(null, 0) < 0 || dup2(2, 1) < 0)
        return command_fail("launch: %s", strerror(errno));
    process_ignore_signals();
    int error = agent_start(&agent, in, out, false);
    close(in);
    close(out);
    if (error)
        return command_fail("launch: start the agent: %s", strerror(-error));
    agent_finish(&agent);
    return COMMAND_DONE;
}
