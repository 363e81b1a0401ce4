/* Implements agent-tasks.h. */
#include "cli/launch/agent-tasks.h"

#include "cli/base/child.h"
#include "cli/base/command.h"
#include "cli/base/guard.h"
#include "cli/base/place.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127, WORDS = 12, RESOLVE_SECONDS = 3 };

void tasks_init(struct tasks *t, bool direct)
{
    t->direct = direct;
    t->terminal = direct && isatty(0);
    t->said = t->output[0] = t->output[1] = -1;
}

void tasks_fini(struct tasks *t)
{
    launch_job_fini(&t->job);
    free(t->mountpoint);
    t->mountpoint = NULL;
}

/* --- processes --- */

/* In a child, before it executes a program: it gets the signal `dies` when the agent has died. */
static void begin_child(pid_t parent, int dies)
{
    process_reset_signals();
    prctl(PR_SET_PDEATHSIG, dies);
    if (getppid() != parent)
        _exit(COMMAND_FAILED);
}

static void give_null(int fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, fd) < 0)
        _exit(COMMAND_FAILED);
}

static _Noreturn void become_mount(struct tasks *t, pid_t parent, int to)
{
    char program[PATH_MAX], world[64], *words[WORDS] = {"dealfs", "mount", "-f"};
    size_t n = 3;
    child_self(program);
    t->remains->mount = getpid();
    begin_child(parent, SIGHUP);
    remains_adopt(); /* also after execv */
    setsid();
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    process_leave_launcher();
    snprintf(world, sizeof world, "wait_join,node=%u/1", t->job.rank);
    if (t->job.options[0]) {
        words[n++] = "-o";
        words[n++] = (char *)t->job.options;
    }
    if (t->job.nodes > 1) {
        words[n++] = "-o";
        words[n++] = world;
    }
    words[n++] = "--";
    words[n++] = (char *)t->job.source;
    words[n++] = (char *)t->job.mountpoint;
    give_null(0);
    dup2(to, 1);
    execv(program, words);
    _exit(NOT_FOUND);
}

static int start_mount_process(struct tasks *t, struct str *why)
{
    pid_t parent = getpid(), child = child_fork(&t->said);
    if (child == 0)
        become_mount(t, parent, t->said);
    if (child < 0)
        return place_error(why, "mount", t->mountpoint, child);
    t->mount = t->remains->mount = child;
    return 0;
}

int tasks_stage(struct tasks *t, struct str *why)
{
    char program[PATH_MAX], *words[] = {"dealfs", "stage", t->mountpoint, NULL};
    pid_t parent = getpid();
    t->stage = fork();
    if (t->stage == 0) {
        child_self(program);
        begin_child(parent, SIGTERM);
        if (!t->terminal)
            setpgid(0, 0);
        give_null(0);
        dup2(2, 1);
        execv(program, words);
        _exit(NOT_FOUND);
    }
    if (t->stage > 0)
        return 0;
    t->stage = 0;
    return place_error(why, "stage", t->mountpoint, -errno);
}

static _Noreturn void become_command(const struct tasks *t, pid_t parent, const int to[2])
{
    begin_child(parent, SIGTERM);
    if (!t->terminal)
        setpgid(0, 0);
    if (!t->direct) {
        give_null(0);
        dup2(to[0], 1);
        dup2(to[1], 2);
    }
    _exit(command_execute(t->job.command));
}

static int make_pipes(struct tasks *t, int to[2])
{
    for (int i = 0; i < 2 && !t->direct; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
            return -errno;
        t->output[i] = ends[0];
        to[i] = ends[1];
    }
    return 0;
}

static void set_variables(const struct tasks *t, const char *place)
{
    char number[16], address[256] = "", port[16] = "";
    sscanf(place, "%255s %15s", address, port);
    snprintf(number, sizeof number, "%u", t->job.nodes);
    setenv("NNODES", number, 1);
    snprintf(number, sizeof number, "%u", t->job.rank);
    setenv("NODE_RANK", number, 1);
    setenv("DEALFS_MOUNT", t->mountpoint, 1);
    setenv("MASTER_ADDR", address, 1);
    setenv("MASTER_PORT", port, 1);
}

int tasks_command(struct tasks *t, const char *place, struct str *why)
{
    int to[2] = {-1, -1};
    pid_t parent = getpid();
    set_variables(t, place);
    int error = make_pipes(t, to);
    t->command = error ? -1 : fork();
    if (t->command == 0)
        become_command(t, parent, to);
    if (t->command < 0)
        error = error ? error : -errno;
    for (int i = 0; i < 2; i++)
        if (to[i] >= 0)
            close(to[i]);
    if (!error)
        return 0;
    t->command = 0;
    return place_error(why, "run", t->job.command[0], error);
}

/* On a terminal, the command is in our process group. */
void tasks_signal(struct tasks *t, int number)
{
    uint64_t now = clock_now();
    if (number != SIGKILL && number == t->signalled && now - t->signal_at < SECOND)
        return;
    t->signalled = number;
    t->signal_at = now;
    if (t->command)
        kill(t->terminal ? t->command : -t->command, number);
    if (t->stage)
        kill(t->stage, number);
}

/* --- the job --- */

/* Variables of ssh's own session are not replaced. */
static bool is_of_session(const char *variable)
{
    return strncmp(variable, "SSH_", 4) == 0 || strncmp(variable, "XDG_", 4) == 0 ||
           strncmp(variable, "HOSTNAME=", 9) == 0;
}

static int enter_job(const struct launch_job *job, struct str *why)
{
    for (char **variable = job->environment; *variable; variable++)
        if (!is_of_session(*variable))
            putenv(*variable);
    if (job->directory[0] && chdir(job->directory) < 0)
        return place_error(why, "go to", job->directory, -errno);
    return 0;
}

/* A program in the dataset does not exist before the mount. */
static int check_command(const struct tasks *t, struct str *why, int *status)
{
    const char *name = t->job.command[0];
    CLEANUP_FREE char *path = place_as_given(name);
    char found[PATH_MAX];
    if (!path)
        return -ENOMEM;
    if (strchr(name, '/') && place_lies_in(path, t->mountpoint))
        return 0;
    int error = strchr(name, '/') ? (access(name, X_OK) < 0 ? -errno : 0) : place_in_path(name, found, sizeof found);
    if (!error)
        return 0;
    *status = error == -ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
    return place_error(why, "run", name, error);
}

int tasks_begin(struct tasks *t, const struct str *text, struct str *why, int *status)
{
    int error = launch_job_read(&t->job, text);
    if (!error)
        error = enter_job(&t->job, why);
    if (!error && !(t->mountpoint = place_absolute(t->job.mountpoint, t->job.rank)))
        error = -ENOMEM;
    if (!error)
        error = check_command(t, why, status);
    if (!error)
        error = remains_make_folder(t->remains, t->mountpoint, why);
    return error ? error : start_mount_process(t, why);
}

/* --- the address at which ranks meet --- */

static int look_up(void *host, struct str *out)
{
    struct addrinfo *found;
    (void)out;
    return getaddrinfo(host, NULL, NULL, &found) == 0 ? 0 : -ENOENT;
}

/* In a child: a name server may not answer for long, but the agent must stay responsive. */
static bool is_known(const char *host)
{
    CLEANUP_STR struct str nothing = STR_INIT;
    return guard_run(look_up, (void *)host, RESOLVE_SECONDS, &nothing) == 0;
}

/* If the network does not know the scheduler's name of this host: an address of this machine. */
static void add_address(struct str *out)
{
    struct ifaddrs *all = NULL, *one;
    char text[INET_ADDRSTRLEN] = "127.0.0.1";
    if (getifaddrs(&all) == 0) {
        for (one = all; one; one = one->ifa_next) {
            const struct sockaddr_in *address = (const struct sockaddr_in *)(const void *)one->ifa_addr;
            if (!address || address->sin_family != AF_INET || ntohl(address->sin_addr.s_addr) >> 24 == 127)
                continue;
            inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
            break;
        }
        freeifaddrs(all);
    }
    str_adds(out, text);
}

static unsigned free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) < 0)
        return 29500; /* PyTorch's default */
    return ntohs(address.sin_port);
}

void tasks_add_place(const struct tasks *t, struct str *out)
{
    const char *port = getenv("MASTER_PORT");
    if (is_known(t->job.host))
        str_adds(out, t->job.host);
    else
        add_address(out);
    if (port && *port)
        str_addf(out, " %s", port);
    else
        str_addf(out, " %u", free_port());
}

/* --- output --- */

static void shut(int *fd)
{
    close(*fd);
    *fd = -1;
}

void tasks_read_mount(struct tasks *t, void (*take)(void *user, const char *line), void *user)
{
    char *end;
    ssize_t n = read(t->said, t->line + t->length, sizeof t->line - 1 - t->length);
    if (n <= 0) {
        if (n == 0 || errno != EINTR)
            shut(&t->said);
        return;
    }
    t->length += (size_t)n;
    t->line[t->length] = '\0';
    while ((end = strchr(t->line, '\n'))) {
        *end = '\0';
        take(user, strncmp(t->line, "dealfs: ", 8) == 0 ? t->line + 8 : t->line);
        t->length -= (size_t)(end + 1 - t->line);
        memmove(t->line, end + 1, t->length + 1);
    }
    if (t->length == sizeof t->line - 1)
        t->length = 0;
}

bool tasks_have_output(const struct tasks *t)
{
    return t->output[0] >= 0 || t->output[1] >= 0;
}

void tasks_read_output(struct tasks *t, enum task_output from,
                       void (*take)(void *user, enum task_output from, const char *bytes, size_t n), void *user)
{
    char bytes[65536];
    ssize_t n = read(t->output[from], bytes, sizeof bytes);
    if (n > 0)
        take(user, from, bytes, (size_t)n);
    else if (n == 0 || errno != EINTR)
        shut(&t->output[from]);
}
