/* Starts the feeder, and counts its deaths. */
#include "fs/keeper/feeding.h"

#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/keeper/backoff.h"
#include "fs/keeper/oom.h"
#include "fs/wire/feed.h"
#include "fs/wire/handover.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* The first rest is this part of the minute of backoff.h; each further one is twice as long, up to ten minutes. */
enum { AGAIN_MS = 100, REST_PART = 4, REST_MINUTES = 10, DOUBLINGS = 10 };

void feeding_init(struct feeding *f, const struct mount_config *config, struct handover *handover, const char *oom)
{
    struct feed *feed = handover_feed(handover);
    *f = (struct feeding){.config = config, .handover = handover, .oom = oom};
    atomic_store(&feed->feeder, 0); /* the previous keeper's feeder died with it */
    if (!atomic_load(&feed->again))
        atomic_store(&feed->off, 0); /* the program may have been installed meanwhile */
    if (handover_find_program("dealfs-feeder", f->program, sizeof f->program))
        f->program[0] = '\0';
}

/* --- start --- */

static _Noreturn void execute_feeder(const struct feeding *f, pid_t keeper)
{
    static const int needed[] = {FD_SHARED, FD_CONFIG, FD_CATALOG, FD_LOG};
    oom_set(f->oom);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        _exit(1);
    for (int fd = FD_DATA; fd <= FD_LAST; fd++) {
        bool kept = false;
        for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
            kept |= fd == needed[i];
        if (!kept)
            close(fd);
    }
    handover_close_others();
    execl(f->program, "dealfs-feeder", f->config->state, (char *)NULL);
    log_error("start %s: %s", f->program, strerror(errno));
    _exit(1);
}

/* A signal that asks it to pause must not end it before it can handle signals: they are blocked until then. */
static pid_t fork_feeder(const struct feeding *f)
{
    pid_t keeper = getpid();
    sigset_t pauses, before;
    sigemptyset(&pauses);
    sigaddset(&pauses, SIGUSR1);
    sigaddset(&pauses, SIGUSR2);
    sigprocmask(SIG_BLOCK, &pauses, &before);
    pid_t child = fork();
    if (child == 0)
        execute_feeder(f, keeper);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return child;
}

static void start_feeder(struct feeding *f, uint64_t now)
{
    pid_t child = fork_feeder(f);
    f->next = now + SECOND; /* there may be no room for a process now */
    f->started = now;
    if (child < 0)
        return;
    f->feeder = child;
    atomic_store(&handover_feed(f->handover)->feeder, (uint32_t)child); /* it waits for this number */
    log_debug("keeper", "feeder %d starts", (int)child);
}

static bool is_wanted(const struct feeding *f)
{
    const struct feed *feed = handover_feed(f->handover);
    bool plans = f->config->sampler_ranks > 0;
    for (int i = 0; i < FEED_PLANS; i++)
        plans |= atomic_load_explicit(&feed->plan[i].version, memory_order_acquire) != 0;
    return plans && !atomic_load(&feed->off);
}

void feeding_tick(struct feeding *f)
{
    struct feed *feed = handover_feed(f->handover);
    uint64_t now = clock_now(), again = atomic_load(&feed->again);
    if (again && now >= again) {
        atomic_store(&feed->again, 0);
        atomic_store(&feed->off, 0);
    }
    if (f->feeder || now < f->next || !is_wanted(f))
        return;
    if (f->program[0]) {
        start_feeder(f, now);
        return;
    }
    log_warning("dealfs-feeder is not in the directory of dealfs-keeper: nothing is read ahead of loaders");
    atomic_store(&feed->off, 1);
}

/* --- the end --- */

static unsigned count_recent(const struct feeding *f, uint64_t now)
{
    unsigned n = 0;
    for (int i = 0; i < FEEDING_DEATHS; i++)
        n += f->died[i] && now - f->died[i] < backoff_minute();
    return n;
}

static uint64_t take_rest(struct feeding *f, uint64_t now)
{
    uint64_t minute = backoff_minute(), most = minute * REST_MINUTES;
    f->rests = now - f->started > minute ? 0 : f->rests < DOUBLINGS ? f->rests : DOUBLINGS;
    uint64_t rest = minute / REST_PART << f->rests++;
    return rest < most ? rest : most;
}

static void count_death(struct feeding *f, const char *how, int number)
{
    struct feed *feed = handover_feed(f->handover);
    uint64_t now = clock_now();
    f->died[f->deaths++ % FEEDING_DEATHS] = now;
    atomic_fetch_add(&feed->deaths, 1);
    unsigned recent = count_recent(f, now);
    if (recent == FEEDING_DEATHS) {
        uint64_t rest = take_rest(f, now);
        atomic_store(&feed->again, now + rest);
        atomic_store(&feed->off, 1);
        log_error("the feeder %s %d: feeders died repeatedly, so nothing is read ahead of loaders for %u s", how,
                  number, (unsigned)(rest / SECOND));
        return;
    }
    f->next = now + (AGAIN_MS * MILLISECOND << recent);
    log_warning("the feeder %s %d: another one is started", how, number);
}

bool feeding_reaped(struct feeding *f, pid_t child, int status)
{
    if (child <= 0 || child != f->feeder)
        return false;
    f->feeder = 0;
    atomic_store(&handover_feed(f->handover)->feeder, 0);
    if (WIFSIGNALED(status))
        count_death(f, "was killed by signal", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        count_death(f, "ended with", WEXITSTATUS(status));
    return true;
}

void feeding_stop(struct feeding *f)
{
    if (f->feeder > 0)
        kill(f->feeder, SIGKILL);
}
