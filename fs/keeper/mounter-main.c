/* dealfs-mounter MOUNTPOINT CONTROL UID GID TMPFS READAHEAD [allow_other|noexec|unnoted|socket=PATH …]: the one process
 * that stays root when root mounts with owner=USER. TMPFS is the most bytes of the RAM tier.
 *
 * Root's command line determines what is mounted, and where. The processes of USER, which hold the other end of its
 * socket, can only request the steps of fs/attach/mounter.h, each at its time. It accepts numbers, descriptors, and
 * the text that is shown as the source. Below the paths of USER it opens only the two mountpoints: with O_PATH,
 * component by component, without following links (fs/attach/attach.c). It ends when the last process of the mount
 * has ended.
 *
 * With a socket (`dealfs mounter`) it is used alone: processes of USER that have no rights, and may be in another
 * container, connect to it (lobby.c). A child serves each mount as above, one after the other, and unmounts when the
 * last process of that mount has ended.
 *
 * One thread, and others that close what USER has sent. Nothing that USER sends is parsed but the configuration, whose
 * user, mountpoint and mounts must be the ones that are known here: root's commands take the configuration from here
 * and not from USER's files. */
#include "fs/attach/attach.h"
#include "fs/attach/config.h"
#include "fs/attach/mounter.h"
#include "fs/attach/pair.h"
#include "fs/attach/utab.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/base/process.h"
#include "fs/base/size.h"
#include "fs/base/thread.h"
#include "fs/keeper/lobby.h"
#include "fs/keeper/shield.h"
#include "fs/keeper/vigil.h"
#include "fs/wire/handover.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { ASKED_FD = FD_MOUNTER, ARGUMENTS = 7, CLOSING_MOST = 8 };
enum { SERVED_S = 60, CLEAR_S = 10 /* less than a client waits for the offer */ };

struct mounter {
    struct attach_options options;
    struct pair pair;
    int data, control;      /* roots of the mounts, until they are attached */
    int gives[MOUNTER_FDS]; /* sent with the answer and not kept, so that they end with the processes of USER */
    char source[PATH_MAX];
    uint64_t tmpfs_most; /* 0: no tmpfs */
    unsigned below;      /* the minor number of what was mounted on the mountpoint before; 0: nothing */
    const char *socket;  /* used alone; else NULL */
    struct vigil vigil;
    struct shield shield;
    bool made, tmpfs, put, noted, spent;
    bool adopted; /* the mount outlived its mounter: its processes can only request to unmount it */
};

static int mounter_look(struct mounter *m, const struct mounter_request *request, int given, struct str *why)
{
    (void)m, (void)request, (void)given, (void)why;
    return 0;
}

static void close_both(int *first, int *second)
{
    if (*first >= 0)
        close(*first);
    if (*second >= 0)
        close(*second);
    *first = *second = -1;
}

static int make_mount(struct mounter *m, const char *path, bool data, struct attach_mount *made, struct str *why)
{
    struct attach_options options = m->options;
    options.source = m->source;
    options.subtype = data ? "dealfs" : "dealfs-ctl";
    options.read_only = data;
    options.no_exec |= !data;
    return attach_mount(path, &options, made, why);
}

static int mounter_make(struct mounter *m, const struct mounter_request *request, int given, struct str *why)
{
    struct attach_mount data, control;
    (void)given;
    if (m->made || !request->source[0])
        return -EALREADY;
    strcpy(m->source, request->source);
    m->pair.source = m->source;
    int error = pair_below(&m->pair, &m->below, why);
    if (!error)
        error = make_mount(m, m->pair.control, false, &control, why);
    if (error)
        return error;
    error = make_mount(m, m->pair.mountpoint, true, &data, why);
    if (error) {
        close_both(&control.device, &control.root);
        return error;
    }
    m->gives[0] = data.device;
    m->gives[1] = control.device;
    m->data = data.root;
    m->control = control.root;
    m->pair.data_minor = data.minor;
    m->pair.control_minor = control.minor;
    m->made = true;
    return 0;
}

static int mounter_tmpfs(struct mounter *m, const struct mounter_request *request, int given, struct str *why)
{
    (void)given;
    uint64_t bytes = request->bytes < m->tmpfs_most ? request->bytes : m->tmpfs_most;
    if (m->tmpfs || bytes == 0) /* 0 would mean unlimited */
        return -EINVAL;
    int error = attach_private_tmpfs(bytes, m->options.uid, m->options.gid, &m->gives[0]);
    m->tmpfs = !error;
    if (error)
        str_addf(why, "make a tmpfs: %s", strerror(-error));
    return error;
}

static int mounter_config(struct mounter *m, const struct mounter_request *request, int given, struct str *why)
{
    struct mount_config c;
    (void)request;
    if (handover_has(FD_CONFIG) || !m->made || given < 0)
        return -EALREADY;
    int error = config_read_sealed(given, &c);
    if (error)
        return error;
    if (c.owner_uid != m->options.uid || c.owner_gid != m->options.gid || c.data_minor != m->pair.data_minor ||
        c.control_minor != m->pair.control_minor || c.nested != m->pair.nested ||
        strcmp(c.mountpoint, m->pair.mountpoint) != 0 || strcmp(c.control, m->pair.control) != 0)
        error = -EPERM;
    else if (dup2(given, FD_CONFIG) < 0)
        error = -errno;
    config_fini(&c);
    if (error)
        str_addf(why, "the configuration is that of another mount");
    return error;
}

static int mounter_put(struct mounter *m, const struct mounter_request *request, int given, struct str *why)
{
    unsigned minor;
    (void)request, (void)given;
    if (!m->made || m->spent)
        return -EINVAL;
    if (m->put) /* a keeper that follows a dead one asks again */
        return 0;
    int error = pair_below(&m->pair, &minor, why);
    if (error)
        return error;
    if (minor != m->below) /* this mount was attached there before */
        return -EBUSY;
    error = pair_put(&m->pair, m->data, m->control, why);
    if (error)
        return error;
    m->put = true;
    close_both(&m->data, &m->control);
    return 0;
}

static int mounter_take(struct mounter *m, const struct mounter_request *request, int given, struct str *why)
{
    struct pair pair = m->pair;
    (void)given, (void)why;
    m->spent = true;
    close_both(&m->data, &m->control); /* mounts that were not put up end with these */
    if (!m->put)
        return 0;
    if (!(request->bytes & TAKE_DATA))
        pair.data_minor = 0;
    if (!(request->bytes & TAKE_CONTROL))
        pair.control_minor = 0;
    int error = pair_take(&pair, request->bytes & TAKE_SPARES);
    if (error)
        return error;
    /* A removed or ended mount must not be recognised again: its number is reused for the next mount. */
    m->pair.control_minor = 0;
    if (!(request->bytes & TAKE_SPARES))
        m->pair.data_minor = 0;
    return 0;
}

/* Processes of another container get no protection, because root of that container has set their limits. */
static int protect_asker(struct mounter *m, pid_t from)
{
    if (m->socket || from <= 0 || from != m->vigil.keeper.id)
        return -EPERM;
    return shield_give(&m->shield, &m->vigil.keeper, m->pair.uid);
}

static void answer(struct mounter *m, const struct mounter_request *request, int to, int given, pid_t from)
{
    static int (*const verbs[])(struct mounter *, const struct mounter_request *, int, struct str *) = {
        [MOUNTER_LOOK] = mounter_look,     [MOUNTER_MAKE] = mounter_make, [MOUNTER_TMPFS] = mounter_tmpfs,
        [MOUNTER_CONFIG] = mounter_config, [MOUNTER_PUT] = mounter_put,   [MOUNTER_TAKE] = mounter_take,
    };
    CLEANUP_STR struct str why = STR_INIT;
    struct mounter_reply reply = {.error = -EINVAL};
    static bool told; /* reported once: mount(8) has a note */
    if (request->verb == MOUNTER_PROTECT)
        reply.error = protect_asker(m, from);
    else if (request->verb < MOUNTER_VERBS)
        reply.error = verbs[request->verb](m, request, given, &why);
    reply.data_minor = m->pair.data_minor;
    reply.control_minor = m->pair.control_minor;
    bool first = request->verb == MOUNTER_PUT && !reply.error && !told;
    snprintf(reply.why, sizeof reply.why, "%s", why.data ? why.data : "");
    mounter_send(to, &reply, sizeof reply, m->gives);
    close_both(&m->gives[0], &m->gives[1]);
    if (first && m->noted)
        utab_note(m->source, m->pair.mountpoint);
    told |= first;
    if (request->verb == MOUNTER_TAKE && m->noted && told)
        utab_forget(m->pair.mountpoint);
}

/* --- descriptors from USER --- */

static _Atomic int closing;

static void *close_one(void *fd)
{
    close((int)(intptr_t)fd);
    closing--;
    return NULL;
}

/* Closing a file on a filesystem that hangs may block, so a thread does it. If USER has sent many, they stay open. */
static void close_sent(const int fds[MOUNTER_FDS])
{
    for (int i = 0; i < MOUNTER_FDS; i++) {
        pthread_t closer;
        if (fds[i] < 0 || closing == CLOSING_MOST)
            continue;
        closing++;
        if (thread_create(&closer, "close", close_one, (void *)(intptr_t)fds[i]) == 0)
            pthread_detach(closer);
        else
            closing--;
    }
}

/* Root's command asks first, before it becomes USER. */
static bool is_question(const struct mounter *m, const struct mounter_request *request, int to,
                        const struct ucred *from)
{
    return (from->uid == m->pair.uid || from->uid == 0) && mounter_may_answer(to, from->uid) &&
           memchr(request->source, 0, sizeof request->source);
}

/* Returns when no process has the other end any more, or if it is silent and nothing is mounted. */
static void serve(struct mounter *m)
{
    for (;;) {
        struct mounter_request request;
        int fds[MOUNTER_FDS];
        struct ucred from;
        ssize_t n = mounter_receive(ASKED_FD, &request, sizeof request, fds, &from);
        shield_check(&m->shield);
        if (n == sizeof request && is_question(m, &request, fds[0], &from))
            answer(m, &request, fds[0], fds[1], from.pid);
        close_sent(fds);
        if (n == MOUNTER_KEEPER)
            vigil_note(&m->vigil, from.pid);
        if (n == -EAGAIN && m->put && !m->spent && vigil_is_over(&m->vigil, &m->pair))
            return;
        bool silent = n == -EAGAIN && m->socket && (!m->put || m->adopted);
        if (silent)
            log_warning("a process that mounts nothing is silent: another one may connect now");
        if (silent || (n <= 0 && n != -EBADMSG && n != -EAGAIN))
            return;
    }
}

/* All processes of USER have died without a request to unmount: remove the dead mount. */
static void take_dead(struct mounter *m)
{
    if (!m->put || m->spent)
        return;
    log_warning("the processes of the mount have died, or do not end: it is unmounted");
    pair_abort(&m->pair);
    pair_take(&m->pair, false);
    if (m->noted)
        utab_forget(m->pair.mountpoint);
}

/* --- used alone --- */

static int look_and_clear(const void *mounter)
{
    const struct mounter *m = mounter;
    close_range(FD_LAST + 1, ~0u, 0); /* a child that hangs must not keep the socket */
    return pair_clear(&m->pair);
}

/* Is the mountpoint there, without a mount? Removes a dead one. A child looks: a file system on the path may hang. */
static int clear_mountpoint(const struct mounter *m)
{
    return process_do_in_child(look_and_clear, m, CLEAR_S);
}

static int say_offer(const struct mounter *m, int to, int error)
{
    struct mounter_offer offer = {.form = MOUNTER_FORM,
                                  .error = error,
                                  .pid_namespace = process_namespace(),
                                  .allow_other = m->options.allow_other};
    snprintf(offer.mountpoint, sizeof offer.mountpoint, "%s", m->pair.mountpoint);
    snprintf(offer.why, sizeof offer.why, "%s", error == -EEXIST ? "a dealfs mount is there" : strerror(-error));
    if (error)
        log_error("%s: %s", m->pair.mountpoint, offer.why);
    return mounter_send(to, &offer, sizeof offer, NULL);
}

/* A child serves one mount, so that all that its user sends ends with it. */
static _Noreturn void serve_mount(struct mounter *m, int from)
{
    if (dup2(from, ASKED_FD) < 0 || close_range(FD_LAST + 1, ~0u, 0) < 0)
        _exit(1);
    int error = pair_adopt(&m->pair);
    if (error && error != -ENOENT) {
        log_error("%s: read the mount table: %s", m->pair.mountpoint, strerror(-error));
        _exit(1);
    }
    if (!error)
        m->adopted = m->made = m->put = m->spent = true;
    serve(m);
    take_dead(m);
    _exit(0);
}

/* A client asks for nothing before it has the offer, so a child that cannot be watched has served nothing. */
static void serve_next(struct mounter *m, struct lobby *lobby, int from)
{
    struct process child;
    int status, error = clear_mountpoint(m);
    if (error && error != -EEXIST) {
        say_offer(m, from, error);
        return;
    }
    pid_t id = fork();
    if (id == 0)
        serve_mount(m, from);
    int failed = id < 0 ? -errno : process_watch(id, &child);
    if (failed && id > 0 && kill(id, SIGKILL) == 0)
        process_await_child(id, SERVED_S, &status);
    int unsaid = say_offer(m, from, failed ? failed : error);
    if (failed)
        return;
    if (unsaid || !lobby_wait(lobby, child.pidfd))
        shutdown(from, SHUT_RDWR); /* the child sees the end of the connection */
    process_forget(&child);
    process_await_child(id, SERVED_S, &status);
    clear_mountpoint(m); /* if the child could not remove the mount */
}

static int open_lobby(const struct mounter *m, struct lobby *lobby)
{
    int error = close_range(FD_DATA, ~0u, 0) < 0 ? -errno : handover_reserve();
    if (!error)
        error = lobby_init(lobby);
    if (!error)
        error = clear_mountpoint(m);
    if (!error || error == -EEXIST || error == -EBUSY) /* a mount that outlived its mounter is there */
        return lobby_open(lobby);
    log_error("%s: %s", m->pair.mountpoint, strerror(-error));
    return error;
}

static int serve_alone(struct mounter *m)
{
    struct lobby lobby = {.path = m->socket, .uid = m->pair.uid, .gid = m->pair.gid};
    if (open_lobby(m, &lobby))
        return 1;
    log_info("serves user %u on %s", (unsigned)lobby.uid, lobby.path);
    for (int came; (came = lobby_await(&lobby)) >= 0; close(came))
        serve_next(m, &lobby, came);
    return 0;
}

static bool parse_arguments(int argc, char **argv, struct mounter *m)
{
    uint64_t uid, gid, readahead;
    if (argc < ARGUMENTS || argv[1][0] != '/' || argv[2][0] != '/' || number_parse(argv[3], 1, UINT32_MAX - 1, &uid) ||
        number_parse(argv[4], 0, UINT32_MAX - 1, &gid) || number_parse(argv[5], 0, UINT64_MAX, &m->tmpfs_most) ||
        number_parse(argv[6], READAHEAD_LEAST, READAHEAD_MOST, &readahead))
        return false;
    CLEANUP_STR struct str nested = STR_INIT;
    str_addf(&nested, "%s/.dealfs", argv[1]);
    if (nested.failed)
        return false;
    m->pair = (struct pair){.mountpoint = argv[1],
                            .control = argv[2],
                            .nested = strcmp(argv[2], nested.data) == 0,
                            .uid = (uid_t)uid,
                            .gid = (gid_t)gid,
                            .readahead = readahead};
    m->options = (struct attach_options){.uid = (uid_t)uid, .gid = (gid_t)gid};
    m->noted = m->pair.nested;
    for (int i = ARGUMENTS; i < argc; i++) {
        m->options.allow_other |= strcmp(argv[i], "allow_other") == 0;
        m->options.no_exec |= strcmp(argv[i], "noexec") == 0;
        m->noted &= strcmp(argv[i], "unnoted") != 0;
        if (strncmp(argv[i], "socket=", strlen("socket=")) == 0)
            m->socket = argv[i] + strlen("socket=");
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct mounter m = {.data = -1, .control = -1, .gives = {-1, -1}, .shield = {.program = -1, .process = -1}};
    if (!parse_arguments(argc, argv, &m) || geteuid() != 0 || (!m.socket && lobby_prepare(ASKED_FD) < 0)) {
        fprintf(stderr,
                "usage: dealfs-mounter MOUNTPOINT CONTROL UID GID TMPFS READAHEAD [OPTION…] (root's `dealfs mount` and "
                "`dealfs mounter` start it)\n");
        return 2;
    }
    log_open("dealfs-mounter", STDERR_FILENO, true);
    signal(SIGPIPE, SIG_IGN);
    if (chdir("/") < 0)
        return 1;
    shield_self();
    if (m.socket)
        return serve_alone(&m);
    if (handover_reserve())
        return 1;
    shield_init(&m.shield);
    process_ignore_signals(); /* not before: a signal that is ignored is lost */
    serve(&m);
    take_dead(&m);
    return 0;
}
