/* The helper gets one request, a packet with perhaps a descriptor, executes the command, passes on what that says on
 * stderr, and answers with its exit status and its last line. It ends when the courier's end of the socket is closed.
 */
#include "mpi/launch.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "mpi/environment.h"
#include "mpi/signals.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { CATALOG_FD = 3, WORDS_MOST = 4096, LINE_MOST = 2000, CPUS = 8192, TICK_MS = 50 };

struct request {
    char name[160];
    char path[PATH_MAX]; /* where to write a catalog; "": mount */
};
struct reply {
    int status; /* of waitpid; or -errno, and `line` what failed */
    char line[LINE_MOST];
};

/* --- in the helper --- */

/* mpirun binds its processes to a core or two; the mount is for the whole job. The kernel keeps to our cpuset. */
static void unbind(void)
{
    unsigned long all[CPUS / (8 * sizeof(unsigned long))];
    memset(all, 0xff, sizeof all);
    syscall(SYS_sched_setaffinity, 0, sizeof all, all);
}

static void default_signals(void)
{
    sigset_t none;
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int receive(int socket, struct request *request, int *catalog)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {
        .msg_iov = &(struct iovec){request, sizeof *request},
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control,
    };
    ssize_t n;
    do
        n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n != sizeof *request)
        return -ECONNRESET;
    *catalog = -1;
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(catalog, CMSG_DATA(c), sizeof *catalog);
    return 0;
}

/* The command's words, and ours among or behind them. */
static char **words(char **command, const struct request *r, int catalog)
{
    size_t n = 0, at = 0;
    while (command[n])
        n++;
    char **all = n < WORDS_MOST ? calloc(n + 4, sizeof *all) : NULL;
    if (!all)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        all[at++] = command[i];
        if (i == 1 && catalog >= 0) {
            all[at++] = (char *)"-o";
            all[at++] = (char *)"catalog=/proc/self/fd/3";
        }
    }
    if (r->path[0])
        all[at++] = (char *)r->path;
    return all;
}

static _Noreturn void execute(char **command, const struct request *r, int catalog, int said)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int high = catalog >= 0 ? fcntl(catalog, F_DUPFD_CLOEXEC, 16) : -1;
    char **all = words(command, r, catalog);
    int error = !all || null < 0 ? -errno : 0;
    if (!error && (dup2(said, 2) < 0 || dup2(null, 0) < 0))
        error = -errno;
    if (!error) {
        close_range(3, high >= 0 ? (unsigned)high - 1 : ~0u, 0);
        if (high >= 0) {
            dup2(high, CATALOG_FD);
            close_range(CATALOG_FD + 1, ~0u, 0);
        }
        execvp(all[0], all);
        error = -errno;
    }
    dprintf(2, "execute %s: %s\n", command[0], strerror(-error));
    _exit(127);
}

struct listener {
    const struct request *request;
    struct str text; /* the line that is being read */
    struct str last; /* the one before, not passed on yet */
};

static void pass_on(struct listener *l)
{
    CLEANUP_STR struct str line = STR_INIT;
    if (!l->last.length)
        return;
    if (l->request->name[0])
        str_addf(&line, "%s: ", l->request->name);
    str_add(&line, l->last.data, l->last.length);
    str_adds(&line, "\n");
    if (!line.failed)
        file_write_all(2, line.data, line.length);
    str_clear(&l->last);
}

static void end_line(struct listener *l)
{
    if (!l->text.length)
        return;
    pass_on(l);
    str_add(&l->last, l->text.data, l->text.length);
    str_clear(&l->text);
}

static void hear(struct listener *l, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n' || bytes[i] == '\r')
            end_line(l);
        else if (l->text.length < LINE_MOST)
            str_add(&l->text, bytes + i, 1);
    }
}

/* Until the command has ended, and what it said by then is read: a process that it left may hold the pipe open. */
static int listen_to(struct listener *l, pid_t child, int from)
{
    char bytes[4096];
    int status = 0;
    bool ended = false;
    for (;;) {
        struct pollfd ready = {.fd = from, .events = POLLIN};
        int n = poll(&ready, 1, ended ? 0 : TICK_MS);
        ssize_t got = n > 0 ? read(from, bytes, sizeof bytes) : -1;
        if (got > 0) {
            hear(l, bytes, (size_t)got);
            continue;
        }
        if (ended)
            break;
        if (got == 0) {
            waitpid(child, &status, 0);
            break;
        }
        ended = waitpid(child, &status, WNOHANG) == child;
    }
    end_line(l);
    return status;
}

static struct reply run(char **command, const struct request *r, int catalog)
{
    struct listener l = {.request = r};
    struct reply reply = {0};
    int said[2];
    if (pipe2(said, O_CLOEXEC) < 0)
        return (struct reply){.status = -errno, .line = "make a pipe"};
    pid_t child = fork();
    if (child == 0)
        execute(command, r, catalog, said[1]);
    close(said[1]);
    if (child < 0) {
        reply = (struct reply){.status = -errno, .line = "fork"};
    } else {
        reply.status = listen_to(&l, child, said[0]);
        if (reply.status == 0)
            pass_on(&l);
        else if (l.last.length)
            snprintf(reply.line, sizeof reply.line, "%s", l.last.data);
    }
    close(said[0]);
    str_fini(&l.text);
    str_fini(&l.last);
    return reply;
}

static _Noreturn void be_helper(char **command, int socket)
{
    struct request request;
    int catalog;
    prctl(PR_SET_NAME, "dealfs-helper");
    default_signals();
    setsid();
    unbind();
    if (dup2(socket, 3) == 3)
        close_range(4, ~0u, 0);
    fcntl(3, F_SETFD, FD_CLOEXEC);
    if (receive(3, &request, &catalog) == 0) {
        environment_leave();
        struct reply reply = run(command, &request, catalog);
        (void)!send(3, &reply, sizeof reply, MSG_NOSIGNAL);
    }
    _exit(0);
}

/* --- in the courier --- */

int helper_start(struct helper *h, char **command)
{
    int ends[2];
    *h = (struct helper){0, -1, command};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    h->pid = fork();
    if (h->pid == 0) {
        close(ends[0]);
        be_helper(command, ends[1]);
    }
    int error = h->pid < 0 ? -errno : 0;
    close(ends[1]);
    h->socket = ends[0];
    if (error) {
        h->pid = 0;
        helper_end(h);
    }
    return error;
}

static int ask(struct helper *h, const struct request *r, int catalog)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct msghdr message = {.msg_iov = &(struct iovec){(void *)r, sizeof *r}, .msg_iovlen = 1};
    if (catalog >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof catalog);
        memcpy(CMSG_DATA(c), &catalog, sizeof catalog);
    }
    return sendmsg(h->socket, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void add_end(struct str *why, const struct helper *h, int status)
{
    str_addf(why, "%s %s ", h->command[0], h->command[1] ? h->command[1] : "");
    if (status < 0)
        str_addf(why, "cannot be started: %s", strerror(-status));
    else if (WIFSIGNALED(status))
        str_addf(why, "ended by signal %d", WTERMSIG(status));
    else
        str_addf(why, "ended with status %d", WEXITSTATUS(status));
}

static int run_there(struct helper *h, const struct request *r, int catalog, struct str *why)
{
    struct reply reply;
    int error = h->socket < 0 ? -ESRCH : ask(h, r, catalog);
    struct pollfd ready = {.fd = h->socket, .events = POLLIN};
    while (!error && poll(&ready, 1, TICK_MS) <= 0)
        signals_obey();
    if (error || recv(h->socket, &reply, sizeof reply, 0) != sizeof reply) {
        str_adds(why, "the helper that mounts has ended");
        return -EIO;
    }
    if (reply.status == 0)
        return 0;
    reply.line[sizeof reply.line - 1] = '\0';
    if (reply.line[0])
        str_adds(why, reply.line);
    else
        add_end(why, h, reply.status);
    return -EIO;
}

int helper_mount(struct helper *h, const char *name, int catalog, struct str *why)
{
    struct request r = {0};
    snprintf(r.name, sizeof r.name, "%s", name);
    return run_there(h, &r, catalog, why);
}

int helper_scan(struct helper *h, const char *name, const char *path, struct str *why)
{
    struct request r = {0};
    snprintf(r.name, sizeof r.name, "%s", name);
    if (strlen(path) >= sizeof r.path) {
        str_adds(why, "the state directory's path is too long");
        return -ENAMETOOLONG;
    }
    strcpy(r.path, path);
    return run_there(h, &r, -1, why);
}

void helper_end(struct helper *h)
{
    int saved = errno;
    if (h->socket >= 0)
        close(h->socket);
    h->socket = -1;
    if (h->pid > 0)
        waitpid(h->pid, NULL, 0);
    h->pid = 0;
    errno = saved;
}
