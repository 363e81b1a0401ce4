/*   dealfs mount (root) ──▶ dealfs-mounter (root, until the mount ends)
 *        │ setresuid                 ▲ fs/attach/mounter.h
 *        ▼                           │
 *   dealfs mount (USER) ──▶ keeper (USER) ──▶ server, feeder (USER) */
#include "cli/mount/split.h"

#include "cli/base/command.h"
#include "cli/base/guard.h"
#include "cli/base/interrupt.h"
#include "cli/base/place.h"
#include "cli/base/way.h"
#include "fs/attach/mounter.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/process.h"
#include "fs/base/ready.h"
#include "fs/base/thread.h"
#include "fs/wire/handover.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { SPLIT_SECONDS = 60, BUSY_MS = 3000, ABSENT_MS = 10000, TICK_MS = 100, TURN_MS = 1000 };

static char *plain_place(const struct start *s, const char *given)
{
    CLEANUP_FREE char *path = place_absolute(given, s->options.node);
    return path ? place_plain(path) : NULL;
}

/* --- the SSD directory --- */

/* If only root can change the directory, and USER may not write to it, USER gets a folder in it: dealfs-USER. */
static int make_ssd_place(struct start *s, struct str *why)
{
    CLEANUP_FREE char *directory = s->options.ssd ? plain_place(s, s->options.ssd) : NULL;
    CLEANUP_STR struct str own = STR_INIT, value = STR_INIT;
    struct stat st;
    if (!directory || !way_is_roots_alone(directory) || lstat(directory, &st) < 0 || (st.st_mode & S_IWOTH))
        return 0;
    str_addf(&own, "%s/dealfs-%s", strcmp(directory, "/") == 0 ? "" : directory, s->owner.name);
    if (own.failed)
        return -ENOMEM;
    bool made = mkdir(own.data, 0700) == 0;
    if (!made && errno != EEXIST)
        return place_error(why, "make", own.data, -errno);
    if (made && lchown(own.data, s->owner.uid, s->owner.gid) < 0)
        return place_error(why, "give away", own.data, -errno);
    place_escape(own.data, false, &value);
    return str_keep(&s->options.ssd, str_steal(&value));
}

/* --- the mounter --- */

void mounter_words_make(struct mounter_words *w, const struct mount_options *o, const struct owner *owner,
                        const char *mountpoint, const char *control)
{
    snprintf(w->uid, sizeof w->uid, "%u", (unsigned)owner->uid);
    snprintf(w->gid, sizeof w->gid, "%u", (unsigned)owner->gid);
    snprintf(w->tmpfs, sizeof w->tmpfs, "%" PRIu64, tiers_tmpfs_most(o));
    snprintf(w->readahead, sizeof w->readahead, "%" PRIu64, o->readahead);
    const char *words[] = {"dealfs-mounter", mountpoint, control, w->uid, w->gid, w->tmpfs, w->readahead};
    w->n = sizeof words / sizeof words[0];
    memset(w->words, 0, sizeof w->words);
    memcpy(w->words, words, sizeof words);
    if (o->allow_other)
        w->words[w->n++] = "allow_other";
    if (o->no_exec)
        w->words[w->n++] = "noexec";
}

static _Noreturn void become_mounter(const struct start *s, const char *program, const char *mountpoint,
                                     const char *control, int socket)
{
    struct mounter_words w;
    int null = open("/dev/null", O_RDWR);
    mounter_words_make(&w, &s->options, &s->owner, mountpoint, control);
    if (s->attached)
        w.words[w.n++] = "unnoted";
    process_reset_signals();
    process_leave_launcher();
    setsid();
    socket = fcntl(socket, F_DUPFD, FD_LAST + 1);
    if (null < 0 || socket < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 ||
        dup2(socket, FD_MOUNTER) < 0 || close_range(3, FD_MOUNTER - 1, 0) < 0 ||
        close_range(FD_MOUNTER + 1, ~0u, 0) < 0)
        _exit(1);
    execv(program, (char **)w.words);
    _exit(1);
}

static int start_mounter(struct start *s, const char *mountpoint, const char *control, struct str *why)
{
    const int on = 1;
    char program[PATH_MAX];
    int ends[2];
    if (handover_find_program("dealfs-mounter", program, sizeof program))
        return place_fail(why, "find", "dealfs-mounter", "neither beside dealfs nor in ../libexec/dealfs", -ENOENT);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return place_error(why, "make", "a pair of sockets", -errno);
    s->mounter = ends[0];
    /* it answers only a process whose user it sees, also the first question, which may arrive before it runs */
    pid_t child = setsockopt(ends[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0 ? -1 : fork();
    if (child == 0)
        become_mounter(s, program, mountpoint, control, ends[1]);
    int error = child < 0 ? -errno : 0;
    close(ends[1]);
    if (error)
        return place_error(why, "start", program, error);
    return mounter_do(s->mounter, MOUNTER_LOOK, 0, why);
}

static int take_mounter(struct start *s, struct str *why)
{
    s->mounter = fcntl(s->options.mounter_fd, F_DUPFD_CLOEXEC, 3);
    if (s->mounter < 0)
        return place_error(why, "option", "mounter_fd", -errno);
    close(s->options.mounter_fd);
    return mounter_do(s->mounter, MOUNTER_LOOK, 0, why);
}

/* The arguments of `dealfs mounter` limit this mount. FUSE requests have process ids of the mounter's namespace. In
 * another namespace, the server cannot distinguish the feeder's reads from those of a loader. */
static int check_offer(struct start *s, const struct mounter_offer *offer, struct str *why)
{
    CLEANUP_FREE char *mountpoint = plain_place(s, s->mountpoint);
    if (!mountpoint)
        return -ENOMEM;
    if (strcmp(mountpoint, offer->mountpoint) != 0) {
        place_name(why, "mountpoint", mountpoint);
        str_adds(why, "dealfs-mounter mounts only on ");
        str_add_printable(why, offer->mountpoint, strlen(offer->mountpoint));
        return -EPERM;
    }
    if (s->options.allow_other && !offer->allow_other)
        return str_fail(why, -EPERM, "option allow_other: dealfs-mounter was started without it");
    s->options.allow_other = offer->allow_other;
    s->config.foreign_pids = offer->pid_namespace != process_namespace();
    if (s->config.foreign_pids)
        command_note(s->to,
                     "warning: no prefetch: dealfs-mounter is in another PID namespace. Let both containers share "
                     "one (Kubernetes: shareProcessNamespace: true; podman: --pid=container:NAME)");
    return 0;
}

/* The previous mount may be about to end, or the mounter about to start: the containers of a pod start together. */
static unsigned patience_with(int error)
{
    return error == -EBUSY || error == -EEXIST ? BUSY_MS : error == -ENOENT || error == -ECONNREFUSED ? ABSENT_MS : 0;
}

/* A mounter ends the connection of a process that mounts nothing and is silent: it may be stopped. So a thread shows,
 * until `turn` is closed, that this process runs, however long a scan takes. */
static struct {
    int mounter, end;
} turn;

static void *keep_turn(void *unused)
{
    struct pollfd end = {.fd = turn.end};
    while (ready_wait(&end, 1, TURN_MS) <= 0)
        mounter_send(turn.mounter, "", MOUNTER_ALIVE, (const int[MOUNTER_FDS]){-1, -1});
    close(turn.mounter);
    close(turn.end);
    return unused;
}

static int start_turn(struct start *s, struct str *why)
{
    pthread_t thread;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return place_error(why, "make", "a pipe", -errno);
    turn.end = ends[0];
    s->turn = ends[1];
    turn.mounter = fcntl(s->mounter, F_DUPFD_CLOEXEC, 3);
    int error = turn.mounter < 0 ? -errno : thread_create(&thread, "mounter", keep_turn, NULL);
    return error ? place_error(why, "start", "a thread", error) : -pthread_detach(thread);
}

static int connect_mounter(struct start *s, struct str *why)
{
    CLEANUP_FREE char *path = place_absolute(s->options.mounter, s->options.node);
    struct mounter_offer offer;
    if (!path)
        return -ENOMEM;
    if (s->options.control)
        return str_fail(why, -EINVAL, "options mounter and control: cannot be combined");
    int fd = mounter_connect(path, &offer, why);
    for (unsigned waited = 0; fd < 0 && waited < patience_with(fd) && !interrupted; waited += TICK_MS) {
        clock_sleep(TICK_MS * MILLISECOND);
        str_clear(why);
        fd = mounter_connect(path, &offer, why);
    }
    if (fd < 0)
        return fd;
    s->mounter = fd;
    int error = check_offer(s, &offer, why);
    return error ? error : start_turn(s, why);
}

int split_begin(struct start *s, struct str *why)
{
    CLEANUP_FREE char *mountpoint = plain_place(s, s->mountpoint), *control = NULL;
    if (s->options.mounter_fd)
        return take_mounter(s, why);
    if (s->options.mounter)
        return connect_mounter(s, why);
    if (!s->owner.another)
        return 0;
    if (!mountpoint)
        return -ENOMEM;
    int error = make_ssd_place(s, why);
    if (error)
        return error;
    if (str_keep(&s->config.mountpoint, strdup(mountpoint)))
        return -ENOMEM;
    error = prepare_clear(s, why);
    if (error)
        return error;
    control = s->options.control ? plain_place(s, s->options.control) : place_join(mountpoint, ".dealfs");
    return control ? start_mounter(s, mountpoint, control, why) : -ENOMEM;
}

int split_become(struct start *s, struct str *why)
{
    if (!s->owner.another)
        return 0;
    int error = process_leave_environment(s->owner.uid);
    if (!error)
        error = process_become(s->owner.uid, s->owner.gid);
    if (error)
        return str_fail(why, error, "become user %s: %s", s->owner.name, strerror(-error));
    s->owner.another = false;
    return 0;
}

/* --- before the courier --- */

struct prepared {
    struct start *start;
    int (*prepare)(struct start *, struct str *);
    int talk[2]; /* for receiving the lock */
};

enum { FOUND = 3 };

static void found_places(struct start *s, char **found[FOUND])
{
    found[0] = &s->config.source;
    found[1] = &s->config.mountpoint;
    found[2] = &s->config.state;
}

/* Returns the results as words, each with a NUL; or the reason of a failure. */
static int prepare_in_child(void *user, struct str *out)
{
    const struct prepared *p = user;
    char **found[FOUND];
    int error = split_become(p->start, out);
    if (!error)
        error = p->prepare(p->start, out);
    if (error)
        return error;
    str_clear(out);
    found_places(p->start, found);
    for (int i = 0; i < FOUND; i++)
        str_add(out, *found[i] ? *found[i] : "", *found[i] ? strlen(*found[i]) + 1 : 1);
    return mounter_send(p->talk[1], "", 1, (const int[MOUNTER_FDS]){p->start->lock, -1});
}

static int take_found(struct start *s, const struct str *words, int talk)
{
    const char *word = words->data, *end = words->data + words->length;
    char **found[FOUND], byte;
    int fds[MOUNTER_FDS];
    if (mounter_receive(talk, &byte, sizeof byte, fds, NULL) != 1)
        return -EIO;
    if (s->lock < 0)
        s->lock = fds[0];
    found_places(s, found);
    for (int i = 0; i < FOUND && word < end; i++, word += strlen(word) + 1)
        if (*word && str_keep(found[i], strdup(word)))
            return -ENOMEM;
    return 0;
}

int split_prepare(struct start *s, int (*prepare)(struct start *, struct str *), struct str *why)
{
    CLEANUP_STR struct str words = STR_INIT;
    struct prepared p = {s, prepare, {-1, -1}};
    if (!s->owner.another)
        return prepare(s, why);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p.talk) < 0)
        return -errno;
    int error = guard_run(prepare_in_child, &p, SPLIT_SECONDS, &words);
    close(p.talk[1]);
    if (!error)
        error = take_found(s, &words, p.talk[0]);
    else if (words.length)
        str_add(why, words.data, words.length);
    close(p.talk[0]);
    return error;
}
