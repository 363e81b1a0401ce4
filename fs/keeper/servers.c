/* Starts servers, one at a time. */
#include "fs/keeper/servers.h"

#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/ready.h"
#include "fs/keeper/oom.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { ADOPT_TRIES = 100, BURY_MS = 100 };

/* --- adopt --- */

/* 0: `server` is the number of a server that has not ended; -ESRCH: it is not; else -errno: unknown. The mount's user
 * can write this number. */
static int watch_other(const struct servers *s, uint32_t server, struct process *p)
{
    int error = process_watch((pid_t)server, p);
    if (error)
        return error;
    error = process_check_owner(p, s->config->owner_uid);
    if (error)
        process_forget(p);
    return error;
}

static int watch_adopted(struct servers *s, uint32_t server)
{
    int error = watch_other(s, server, &s->server);
    if (!error && process_is_dead(&s->server)) {
        process_forget(&s->server);
        error = -ESRCH;
    }
    return error;
}

int servers_init(struct servers *s, const struct mount_config *config, struct handover *handover, const char *oom,
                 uint64_t trial)
{
    *s = (struct servers){.config = config, .handover = handover, .oom = oom, .server = {0, -1, -1}, .status = -1};
    for (unsigned i = 0; i < LINGERING_MOST; i++) /* of the previous keeper */
        s->lingerers += watch_other(s, atomic_load(&handover->lingering[i]), &s->lingering[s->lingerers]) == 0;
    return program_init(&s->program, handover, trial);
}

/* The number changes at most once, unless the mount's user manipulates it: then another server is started. */
static int find_adopted(struct servers *s)
{
    uint32_t server = atomic_load(&s->handover->server);
    for (int i = 0; i < ADOPT_TRIES; i++) {
        int error = watch_adopted(s, server);
        if (!error) {
            s->status = -1;
            log_info("the previous keeper died: this one watches server %d", (int)s->server.id);
            return 1;
        }
        if (error != -ESRCH) {
            log_limited(LOG_LEVEL_ERROR, 1, "look whether server %u lives: %s", (unsigned)server, strerror(-error));
            return error;
        }
        if (atomic_compare_exchange_strong(&s->handover->server, &server, 0))
            return 0;
    }
    log_warning("the recorded process id of the server keeps changing: another server is started");
    return 0;
}

void servers_note_kill(const struct servers *s, bool killed)
{
    if (killed)
        atomic_fetch_or(&s->handover->flags, HANDOVER_KILLED);
    else
        atomic_fetch_and(&s->handover->flags, ~(uint32_t)HANDOVER_KILLED);
}

/* A server on trial that died together with its keeper has failed as well: nobody saw it, but it was not confirmed. */
int servers_adopt(struct servers *s)
{
    int adopted = find_adopted(s);
    if (adopted == 0)
        servers_note_kill(s, true);
    if (adopted == 0 && program_died(&s->program))
        endings_add(&s->handover->endings, ENDING_UNSEEN, 0);
    return adopted;
}

/* --- start --- */

/* Parent and child both call it: otherwise, if the keeper dies between fork and this, the next keeper would not know of
 * the server. False: there is another server, or the next keeper is about to start one. */
static bool register_server(struct handover *h, uint32_t before, pid_t server)
{
    return atomic_compare_exchange_strong(&h->server, &before, (uint32_t)server) || before == (uint32_t)server;
}

/* `before`: what was registered before the fork. */
static _Noreturn void execute_server(const struct servers *s, uint32_t before)
{
    char line[PATH_MAX + 64];
    oom_set(s->oom);
    if (!register_server(s->handover, before, getpid()))
        _exit(0);
    close(FD_DATA_MOUNT);
    close(FD_CONTROL_MOUNT);
    handover_close_others();
    program_execute(s->config->state);
    snprintf(line, sizeof line, "start %s: %s", s->program.path, strerror(errno));
    log_error("%s", line);
    handover_tell(line);
    _exit(SERVER_REFUSED);
}

int servers_start(struct servers *s)
{
    struct handover *h = s->handover;
    program_choose(&s->program, h);
    atomic_fetch_add(&h->generation, 1);
    atomic_fetch_and(&h->flags, ~(uint32_t)HANDOVER_REFUSED);
    atomic_store(&h->started, clock_now());
    atomic_store(&h->answered, handover_answered(h));
    atomic_store(&h->pulse.beats, 0);
    atomic_store(&h->pulse.oldest, 0);
    s->status = -1;
    uint32_t before = atomic_load(&h->server);
    pid_t child = fork();
    if (child == 0)
        execute_server(s, before);
    if (child < 0)
        return -errno;
    register_server(h, before, child);
    log_debug("keeper", "server %d starts: number %u of this mount", (int)child, atomic_load(&h->generation));
    int error = process_watch(child, &s->server);
    if (error) {
        kill(child, SIGKILL);
        waitpid(child, &s->status, WNOHANG); /* one that cannot die now is reaped later */
    }
    return error;
}

/* --- dead servers --- */

static struct ending ending_of(const struct servers *s, enum ending_how fault)
{
    struct ending ending = {.how = fault};
    if (!fault && s->status != -1) {
        ending.how = WIFSIGNALED(s->status) ? ENDING_SIGNAL : ENDING_EXIT;
        ending.number = WIFSIGNALED(s->status) ? WTERMSIG(s->status) : WEXITSTATUS(s->status);
    }
    return ending;
}

unsigned servers_note_death(const struct servers *s, enum ending_how fault, uint64_t young)
{
    char death[128];
    struct handover *h = s->handover;
    struct ending ending = ending_of(s, fault);
    endings_add(&h->endings, ending.how, ending.number);
    servers_note_kill(s, ending_is_kill(&ending));
    ending_describe(&ending, death, sizeof death);
    uint64_t answered = handover_answered(h) - atomic_load(&h->answered);
    uint64_t lived = clock_now() - atomic_load(&h->started);
    bool failure = answered == 0 && lived < young;
    unsigned failures = failure ? atomic_fetch_add(&h->failures, 1) + 1 : 0;
    if (!failure)
        atomic_store(&h->failures, 0);
    log_error("server %d %s after %" PRIu64 " ms and %" PRIu64 " requests", (int)s->server.id, death,
              lived / MILLISECOND, answered);
    return failures;
}

bool servers_refused(const struct servers *s)
{
    return (atomic_load(&s->handover->flags) & HANDOVER_REFUSED) ||
           (s->status != -1 && WIFEXITED(s->status) && WEXITSTATUS(s->status) == SERVER_REFUSED);
}

static bool has_ended(const struct process *p, int ms)
{
    return ready_wait(&(struct pollfd){.fd = p->pidfd, .events = POLLIN}, 1, ms) > 0;
}

void servers_bury(struct servers *s)
{
    if (has_ended(&s->server, BURY_MS) || s->lingerers == LINGERING_MOST)
        process_forget(&s->server);
    else
        s->lingering[s->lingerers++] = s->server;
    s->server = (struct process){0, -1, -1};
    servers_lingering(s);
}

unsigned servers_lingering(struct servers *s)
{
    for (unsigned i = 0; i < s->lingerers;) {
        if (!has_ended(&s->lingering[i], 0)) {
            i++;
            continue;
        }
        process_forget(&s->lingering[i]);
        s->lingering[i] = s->lingering[--s->lingerers];
    }
    for (unsigned i = 0; i < LINGERING_MOST; i++)
        atomic_store(&s->handover->lingering[i], i < s->lingerers ? (uint32_t)s->lingering[i].id : 0);
    return s->lingerers;
}
