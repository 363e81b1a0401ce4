/* Watches a process by its pidfd and by the state of its leader. */
#include "fs/base/process.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/ready.h"

#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { STATUS_MOST = 16384, CPUS = 8192 };

int process_watch(pid_t id, struct process *p)
{
    int pidfd = id > 0 ? (int)syscall(SYS_pidfd_open, id, 0) : -1; /* it is close-on-exec */
    if (pidfd < 0)
        return id > 0 ? -errno : -ESRCH;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)id);
    *p = (struct process){id, pidfd, open(path, O_RDONLY | O_CLOEXEC)};
    return 0;
}

void process_forget(struct process *p)
{
    if (p->pidfd >= 0)
        close(p->pidfd);
    if (p->stat >= 0)
        close(p->stat);
    *p = (struct process){0, -1, -1};
}

static bool is_readable(int pidfd)
{
    return ready_now(pidfd, POLLIN);
}

bool process_is_gone(pid_t id)
{
    struct process p;
    int error = process_watch(id, &p);
    if (error)
        return error == -ESRCH;
    bool gone = is_readable(p.pidfd);
    process_forget(&p);
    return gone;
}

/* EINVAL: the mount table of a process that has ended and was not reaped. */
int process_look_error(int error)
{
    switch (-error) {
    case ENOENT:
    case ESRCH:
    case EINVAL:
    case EACCES:
    case EPERM:
        return 0;
    }
    return error;
}

/* A signal set from the line of /proc/PID/status that begins with `name`. */
static bool signal_set(const char *status, const char *name, uint64_t *set)
{
    const char *line = strstr(status, name);
    return line && sscanf(line + strlen(name), "%" SCNx64, set) == 1;
}

/* A signal that ends a process by default becomes SIGKILL for each of its threads as soon as it is sent; signals that
 * dump core do so only when they are delivered. */
static bool is_fatal(uint64_t pending, uint64_t harmless)
{
    static const int dumping[] = {SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS};
    uint64_t dumps = 0;
    for (size_t i = 0; i < sizeof dumping / sizeof *dumping; i++)
        dumps |= UINT64_C(1) << (dumping[i] - 1);
    return pending & (UINT64_C(1) << (SIGKILL - 1) | (dumps & ~harmless));
}

static bool read_proc(pid_t id, const char *file, char *text, size_t room)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)id, file);
    CLEANUP_CLOSE int fd = id > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd < 0 ? -1 : read(fd, text, room - 1);
    if (n < 0)
        return false;
    text[n] = '\0';
    return true;
}

static bool read_status(pid_t id, char *status, size_t room)
{
    return read_proc(id, "status", status, room);
}

int process_run_time(const struct process *p, uint64_t *time)
{
    char line[128];
    bool seen = read_proc(p->id, "schedstat", line, sizeof line) && sscanf(line, "%" SCNu64, time) == 1;
    return seen ? 0 : -ENOENT;
}

bool process_is_traced(pid_t id)
{
    char status[STATUS_MOST];
    const char *tracer = read_status(id, status, sizeof status) ? strstr(status, "\nTracerPid:\t") : NULL;
    return tracer && atoi(tracer + strlen("\nTracerPid:\t")) != 0;
}

uint64_t process_pending_signals(pid_t thread)
{
    char status[STATUS_MOST];
    uint64_t own, shared;
    if (!read_status(thread, status, sizeof status) || !signal_set(status, "\nSigPnd:", &own) ||
        !signal_set(status, "\nShdPnd:", &shared))
        return 0;
    return own | shared;
}

enum thread_fate process_thread_fate(pid_t thread)
{
    char status[STATUS_MOST];
    uint64_t own, shared, blocked, ignored, caught;
    if (!read_status(thread, status, sizeof status))
        return THREAD_UNSEEN;
    if (!signal_set(status, "\nSigPnd:", &own) || !signal_set(status, "\nShdPnd:", &shared) ||
        !signal_set(status, "\nSigBlk:", &blocked) || !signal_set(status, "\nSigIgn:", &ignored) ||
        !signal_set(status, "\nSigCgt:", &caught))
        return THREAD_UNSEEN;
    return is_fatal(own | shared, blocked | ignored | caught) ? THREAD_DIES : THREAD_LIVES;
}

/* State of its leader, as a letter of /proc/PID/stat; 'X': it does not exist any more; '?': unknown. */
static char state_of(const struct process *p)
{
    char line[256];
    ssize_t n = p->stat >= 0 ? pread(p->stat, line, sizeof line - 1, 0) : -1;
    if (n < 0)
        return errno == ESRCH ? 'X' : '?';
    line[n] = '\0';
    char *name_end = strrchr(line, ')'); /* the name may contain parentheses */
    return name_end && name_end[1] == ' ' ? name_end[2] : '?';
}

bool process_is_dead(const struct process *p)
{
    if (is_readable(p->pidfd))
        return true;
    char state = state_of(p);
    return state == 'Z' || state == 'X';
}

bool process_is_stopped(const struct process *p)
{
    return state_of(p) == 'T';
}

int process_signal(const struct process *p, int signal)
{
    return syscall(SYS_pidfd_send_signal, p->pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

int process_kill(const struct process *p)
{
    return process_signal(p, SIGKILL);
}

/* If its program may not be read, the owner of its folder in /proc may be root. */
int process_check_owner(const struct process *p, uid_t uid)
{
    char status[STATUS_MOST];
    unsigned real;
    if (!read_status(p->id, status, sizeof status))
        return process_look_error(-errno) ? -errno : -ESRCH;
    const char *line = strstr(status, "\nUid:");
    bool is = line && sscanf(line, "\nUid: %u", &real) == 1 && real == uid && !is_readable(p->pidfd);
    return is ? 0 : -ESRCH;
}

bool process_belongs_to(const struct process *p, uid_t uid)
{
    return process_check_owner(p, uid) == 0;
}

/* Without a descriptor for it, the child is checked every LOOK_MS. */
int process_await_child(pid_t child, int seconds, int *status)
{
    enum { LOOK_MS = 20 };
    uint64_t deadline = clock_now() + (uint64_t)seconds * SECOND, now;
    struct process p;
    bool watched = process_watch(child, &p) == 0;
    struct pollfd end = {.fd = watched ? p.pidfd : -1, .events = POLLIN};
    pid_t ended;
    while ((ended = waitpid(child, status, WNOHANG)) == 0 && (now = clock_now()) < deadline)
        ready_wait(&end, 1, watched ? (int)((deadline - now) / MILLISECOND) + 1 : LOOK_MS);
    int error = ended == child ? 0 : ended < 0 ? -errno : -ETIMEDOUT;
    if (ended == 0) {
        kill(child, SIGKILL);
        waitpid(child, status, WNOHANG);
    }
    if (watched)
        process_forget(&p);
    return error;
}

int process_do_in_child(int (*work)(const void *user), const void *user, int seconds)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(-work(user));
    int error = child < 0 ? -errno : process_await_child(child, seconds, &status);
    return error ? error : WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

uint64_t process_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

void process_ignore_signals(void)
{
    static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGQUIT};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        signal(ignored[i], SIG_IGN);
}

/* A session keyring outlives setuid(2), and may have root's keys. The new one has none. EPERM: a container's filter
 * denies keyctl(2) to all its processes. For this thread, and for threads that it creates. */
int process_leave_keyring(void)
{
    long keyring = syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL);
    return keyring < 0 && errno != ENOSYS && errno != EPERM ? -errno : 0;
}

int process_become(uid_t uid, gid_t gid)
{
    if (geteuid() != 0 || (uid == 0 && gid == getegid()))
        return 0;
    int error = process_leave_keyring();
    if (error)
        return error;
    struct passwd *user = getpwuid(uid);
    error = user ? initgroups(user->pw_name, gid) : setgroups(1, &gid);
    return error || setgid(gid) || setuid(uid) ? -errno : 0;
}

int process_become_mounter(uid_t uid, gid_t gid)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    bool root = geteuid() == 0;
    if (root && prctl(PR_SET_KEEPCAPS, 1))
        return -errno;
    int error = process_become(uid, gid);
    if (error || !root || geteuid() == 0)
        return error;
    data[0].permitted = data[0].effective = 1u << CAP_DAC_READ_SEARCH | 1u << CAP_SYS_ADMIN;
    return syscall(SYS_capset, &header, data) ? -errno : 0;
}

static bool begins_with_one_of(const char *variable, const char *const prefixes[])
{
    for (; *prefixes; prefixes++)
        if (strncmp(variable, *prefixes, strlen(*prefixes)) == 0)
            return true;
    return false;
}

static bool is_launchers(const char *variable)
{
    static const char *const prefixes[] = {"OMPI_", "ORTE_", "PMIX_", "PMI_", "PRTE_", "HYDRA_", "HYDI_", NULL};
    return begins_with_one_of(variable, prefixes);
}

static bool is_private(const char *variable)
{
    static const char *const public[] = {
        "PATH=",          "LD_LIBRARY_PATH=", "LANG=",   "LC_",           "TZ=",
        "TMPDIR=",        "SLURM_TMPDIR=",    "DEALFS_", "ASAN_OPTIONS=", "TSAN_OPTIONS=",
        "UBSAN_OPTIONS=", "LSAN_OPTIONS=",    NULL};
    return !begins_with_one_of(variable, public);
}

static void drop_variables(bool (*drop)(const char *variable))
{
    char **kept = environ;
    for (char **v = environ; *v; v++)
        if (!drop(*v))
            *kept++ = *v;
    *kept = NULL;
}

int process_leave_environment(uid_t uid)
{
    struct passwd *user = getpwuid(uid);
    drop_variables(is_private);
    return user && (setenv("HOME", user->pw_dir, 1) || setenv("USER", user->pw_name, 1)) ? -errno : 0;
}

void process_leave_launcher(void)
{
    unsigned long all[CPUS / (8 * sizeof(unsigned long))];
    drop_variables(is_launchers);
    memset(all, 0xff, sizeof all); /* the kernel leaves those that the control group allows */
    syscall(SYS_sched_setaffinity, 0, sizeof all, all);
}

void process_reset_signals(void)
{
    sigset_t none;
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}
