/* A request is a frame of words, each with a final NUL, and optional descriptors: our name, then a command line. The
 * helper executes it and replies with a frame: the status of waitpid, or -errno, and the last line of output. It ends
 * when the courier's end of the socket is closed, and so does a command that is mounting or scanning. */
#include "mpi/helper.h"

#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/base/process.h"
#include "fs/base/ready.h"
#include "fs/wire/message.h"
#include "mpi/signals.h"

#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* GIVEN_FD … MOUNTER_FD: numbers of the command's descriptors. HIGH_FD … KEPT_MOUNTER: those of the helper. */
enum { GIVEN_FD = 3, LOCK_FD = 4, TALK_FD = 5, MOUNTER_FD = 6, HIGH_FD = 16, KEPT_LOCK = 17, KEPT_MOUNTER = 18 };
enum { LINE_MOST = 2000, TICK_MS = 50 };

/* --- in the helper --- */

/* A command that runs. */
struct listener {
    const char *name;
    bool undoes;     /* not to be interrupted */
    struct str text; /* the current line */
    struct str last; /* the previous line, not passed on yet */
};

static void pass_line_on(struct listener *l)
{
    CLEANUP_STR struct str line = STR_INIT;
    if (!l->last.length)
        return;
    if (l->name[0])
        str_addf(&line, "%s: ", l->name);
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
    pass_line_on(l);
    str_add_printable(&l->last, l->text.data, l->text.length);
    str_clear(&l->text);
}

static void hear_bytes(struct listener *l, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n' || bytes[i] == '\r')
            end_line(l);
        else if (l->text.length < LINE_MOST)
            str_add(&l->text, bytes + i, 1);
    }
}

/* The end of a mount is complete when nobody has its lock. */
static void let_go(struct listener *l)
{
    l->undoes = true;
    close(KEPT_LOCK);
    close(KEPT_MOUNTER);
}

/* Nobody else would unmount what the command mounts. It undoes its steps. */
static void obey_end(struct listener *l, pid_t child, short events)
{
    if (!(events & POLLHUP) || l->undoes)
        return;
    let_go(l);
    kill(child, SIGTERM);
}

/* Read until the command has ended and its output is read. A process that it left behind may keep the pipe open. */
static int listen_to(struct listener *l, pid_t child, int from)
{
    char bytes[4096];
    int status = 0;
    bool ended = false;
    for (;;) {
        struct pollfd ready[] = {{.fd = from, .events = POLLIN}, {.fd = l->undoes ? -1 : HIGH_FD}};
        int n = ready_wait(ready, 2, ended ? 0 : TICK_MS);
        ssize_t got = n > 0 && ready[0].revents ? read(from, bytes, sizeof bytes) : -1;
        if (got > 0) {
            hear_bytes(l, bytes, (size_t)got);
            continue;
        }
        if (ended)
            break;
        if (got == 0) {
            waitpid(child, &status, 0);
            break;
        }
        ended = waitpid(child, &status, WNOHANG) == child;
        if (!ended)
            obey_end(l, child, ready[1].revents);
    }
    end_line(l);
    return status;
}

/* Without that descriptor, the number is closed. */
static void place_descriptor(int fd, int number)
{
    if (fd < 0 || dup2(fd, number) < 0)
        close(number);
}

static _Noreturn void execute_words(const char *words, size_t n, const int given[2], int said)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char **all = calloc(n + 1, sizeof *all);
    int error = !all || null < 0 || dup2(said, 2) < 0 || dup2(null, 0) < 0 || dup2(said, 1) < 0 ? -errno : 0;
    if (!error) {
        size_t count = 0;
        for (size_t at = 0; at < n; at += strlen(words + at) + 1)
            all[count++] = (char *)words + at;
        int high[] = {given[0] < 0 ? -1 : fcntl(given[0], F_DUPFD, KEPT_MOUNTER + 1),
                      given[1] < 0 ? -1 : fcntl(given[1], F_DUPFD, KEPT_MOUNTER + 1)};
        place_descriptor(high[0], GIVEN_FD);
        place_descriptor(high[1], TALK_FD);
        place_descriptor(KEPT_LOCK, LOCK_FD);
        place_descriptor(KEPT_MOUNTER, MOUNTER_FD);
        close_range(MOUNTER_FD + 1, ~0u, 0);
        signal(SIGPIPE, SIG_DFL);
        execvp(all[0], all);
        error = -errno;
    }
    dprintf(2, "execute %s: %s\n", words, strerror(-error));
    _exit(127);
}

/* Returns the status; `l->last`: the last line of a failed command. */
static int run_words(struct listener *l, const char *words, size_t n, int given[2])
{
    int said[2];
    if (pipe2(said, O_CLOEXEC) < 0)
        return -errno;
    pid_t child = fork();
    if (child == 0)
        execute_words(words, n, given, said[1]);
    int status = child < 0 ? -errno : 0;
    close(said[1]);
    for (int i = 0; i < 2; i++) { /* the process at the other end must notice when the command has ended */
        if (given[i] >= 0)
            close(given[i]);
        given[i] = -1;
    }
    if (!status)
        status = listen_to(l, child, said[0]);
    close(said[0]);
    if (status == 0)
        pass_line_on(l);
    return status;
}

static void answer_request(const char *request, size_t n, int given[2])
{
    size_t name = strlen(request) + 1, verb = name + (n > name ? strlen(request + name) + 1 : 0);
    struct listener l = {.name = request};
    if (n > verb && strcmp(request + verb, "umount") == 0)
        let_go(&l);
    int status = n > name ? run_words(&l, request + name, n - name, given) : -EINVAL;
    struct iovec part[] = {{&status, sizeof status}, {l.last.data, l.last.length}};
    message_sendv(HIGH_FD, 0, part, 2, NULL);
    str_fini(&l.text);
    str_fini(&l.last);
}

static _Noreturn void be_helper(const struct arguments *a, int socket)
{
    uint32_t kind;
    void *request;
    size_t n;
    int fds[MESSAGE_FDS];
    prctl(PR_SET_NAME, "dealfs-helper");
    process_reset_signals();
    signal(SIGPIPE, SIG_IGN); /* the reader of the output ends with the launcher */
    process_leave_launcher();
    setsid();
    /* Closes all descriptors that the helper should not have, whatever their number. */
    int lock = a->lock >= 0 ? fcntl(a->lock, F_DUPFD, KEPT_MOUNTER + 1) : -1;
    int mounter = a->mounter >= 0 ? fcntl(a->mounter, F_DUPFD, KEPT_MOUNTER + 1) : -1;
    dup2(socket, HIGH_FD);
    place_descriptor(lock, KEPT_LOCK);
    place_descriptor(mounter, KEPT_MOUNTER);
    close_range(GIVEN_FD, HIGH_FD - 1, 0);
    close_range(KEPT_MOUNTER + 1, ~0u, 0);
    if (a->uid && (process_leave_environment((uid_t)a->uid) || process_become((uid_t)a->uid, (gid_t)a->gid)))
        _exit(1);
    while (message_receive(HIGH_FD, &kind, &request, &n, fds) == 0) {
        answer_request(request, n, fds);
        free(request);
        for (int i = 0; i < MESSAGE_FDS; i++)
            if (fds[i] >= 0)
                close(fds[i]);
    }
    _exit(0);
}

/* --- in the courier --- */

int helper_start(struct courier_helper *h, const struct arguments *a)
{
    int ends[2];
    *h = (struct courier_helper){
        .socket = -1, .command = a->command, .locks = a->lock >= 0, .has_mounter = a->mounter >= 0};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    h->pid = fork();
    if (h->pid == 0)
        be_helper(a, ends[1]);
    int error = h->pid < 0 ? -errno : 0;
    if (a->lock >= 0)
        close(a->lock);
    if (a->mounter >= 0)
        close(a->mounter);
    close(ends[1]);
    h->socket = ends[0];
    if (error)
        helper_end(h);
    return error;
}

static void add_word(struct str *s, const char *word)
{
    str_add(s, word, strlen(word) + 1);
}

static void add_option(struct str *s, const char *option)
{
    add_word(s, "-o");
    add_word(s, option);
}

/* The command line, with an optional option and last word. */
static struct str make_request(const struct courier_helper *h, const char *option, const char *last)
{
    struct str s = STR_INIT;
    add_word(&s, h->name);
    for (size_t i = 0; h->command[i]; i++) {
        add_word(&s, h->command[i]);
        if (i == 1 && option && *option)
            add_option(&s, option);
        if (i == 1 && h->locks)
            add_option(&s, "lock=4");
        if (i == 1 && h->has_mounter)
            add_option(&s, "mounter_fd=6");
    }
    if (last)
        add_word(&s, last);
    return s;
}

static void add_end(struct str *why, const struct courier_helper *h, int status)
{
    str_addf(why, "%s %s ", h->command[0], h->command[1] ? h->command[1] : "");
    if (status < 0)
        str_addf(why, "cannot be started: %s", strerror(-status));
    else if (WIFSIGNALED(status))
        str_addf(why, "ended by signal %d", WTERMSIG(status));
    else
        str_addf(why, "ended with status %d", WEXITSTATUS(status));
}

/* Frees the request. fds[0] -1: no descriptor. */
static int send_request(struct courier_helper *h, struct str request, const int fds[MESSAGE_FDS], struct str *why)
{
    CLEANUP_STR struct str words = request;
    int error = words.failed ? -ENOMEM : h->socket < 0 ? -ESRCH : h->begun ? -EBUSY : 0;
    if (!error)
        error = message_send(h->socket, 0, words.data, words.length, fds);
    if (error)
        str_adds(why, "the helper that mounts has ended");
    return error ? -EIO : 0;
}

bool helper_has_ended(const struct courier_helper *h)
{
    return !h->begun || ready_now(h->socket, POLLIN);
}

static int hear_answer(struct courier_helper *h, struct str *why)
{
    CLEANUP_FREE void *reply = NULL;
    struct pollfd ready = {.fd = h->socket, .events = POLLIN};
    uint32_t kind;
    size_t n;
    int status;
    while (ready_wait(&ready, 1, TICK_MS) <= 0)
        signals_obey();
    int error = message_receive(h->socket, &kind, &reply, &n, NULL);
    if (error || n < sizeof status)
        return str_fail(why, -EIO, "the helper that mounts has ended");
    memcpy(&status, reply, sizeof status);
    if (status == 0)
        return 0;
    if (n > sizeof status)
        str_add(why, (char *)reply + sizeof status, n - sizeof status);
    else
        add_end(why, h, status);
    return -EIO;
}

/* Frees the request. */
static int helper_run(struct courier_helper *h, struct str request, int fd, struct str *why)
{
    int error = send_request(h, request, (const int[MESSAGE_FDS]){fd, -1, -1}, why);
    return error ? error : hear_answer(h, why);
}

static const char *mount_option(int catalog, int looked)
{
    return catalog >= 0 ? "catalog=/proc/self/fd/3" : looked >= 0 ? "looked=3" : "";
}

int helper_mount(struct courier_helper *h, int catalog, int looked, struct str *why)
{
    int error =
        helper_run(h, make_request(h, mount_option(catalog, looked), NULL), catalog >= 0 ? catalog : looked, why);
    h->mounted = !error;
    return error;
}

/* The position of a descriptor defines its meaning. Without another descriptor, the socket is in both positions. */
int helper_begin_mount(struct courier_helper *h, int catalog, int looked, int courier, struct str *why)
{
    char option[64];
    const char *first = mount_option(catalog, looked);
    int given = catalog >= 0 ? catalog : looked >= 0 ? looked : courier;
    snprintf(option, sizeof option, "%s%scourier=%d", first, *first ? "," : "", TALK_FD);
    int error = send_request(h, make_request(h, option, NULL), (const int[MESSAGE_FDS]){given, courier, -1}, why);
    h->begun = !error;
    return error;
}

int helper_end_mount(struct courier_helper *h, struct str *why)
{
    int error = hear_answer(h, why);
    h->begun = false;
    h->mounted = !error;
    return error;
}

int helper_look(struct courier_helper *h, uint32_t part, uint32_t parts, int looked, struct str *why)
{
    char option[64];
    snprintf(option, sizeof option, "looked=3,portion=%u/%u", part, parts);
    return helper_run(h, make_request(h, option, NULL), looked, why);
}

int helper_scan(struct courier_helper *h, const char *path, struct str *why)
{
    return helper_run(h, make_request(h, NULL, path), -1, why);
}

void helper_undo(struct courier_helper *h, const char *mountpoint)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct str request = STR_INIT;
    if (!h->mounted)
        return;
    add_word(&request, h->name);
    add_word(&request, h->command[0]);
    add_word(&request, "umount");
    add_word(&request, mountpoint);
    if (helper_run(h, request, -1, &why))
        log_error("%s stays mounted: %s", mountpoint, why.data ? why.data : strerror(ENOMEM));
    h->mounted = false;
}

void helper_end(struct courier_helper *h)
{
    KEEP_ERRNO;
    if (h->socket >= 0)
        close(h->socket);
    h->socket = -1;
    if (h->pid > 0)
        waitpid(h->pid, NULL, 0);
    h->pid = 0;
}
