/* dealfs-feeder STATE: reads ahead of the loaders of a mount, through the mount.
 *
 * It takes the plans that the server recorded, and gets their lists from the control mount like a loader. inotify shows
 * how far loaders are. It opens the files that come next just long enough to request readahead. It keeps nothing that
 * cannot be fetched again: the keeper replaces a killed feeder, and the new one continues at the loaders' positions.
 *
 * One thread. It waits for the mount like any other client, and is killed if it delays an unmount for too long. */
#include "fs/feed/feeder.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/base/process.h"
#include "fs/base/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

enum {
    IDLE_MS = 100,    /* between two checks of the plans */
    END_MS = 10,      /* while lists are read: an `end` waits until the feeder has noticed it */
    GATHER_US = 1000, /* pause that lets reads accumulate */
    PAUSE_MS = 10,
    PAUSE_S = 3, /* per signal: by then the unmount is done, or asks again */
    START_MS = 2000,
    FILE_SHARE = 8, /* a file that is larger than this part of the window is not fed */
    OOM_SCORE = 500,
};

/* A process that unmounts sends SIGUSR1, waits until this process shows itself as paused and, if the unmount failed,
 * sends SIGUSR2. The later signal counts. */
static const char shown[] = "dealfs-feeder", shown_paused[] = "dealfs-paused";
static volatile sig_atomic_t pause_asked, resume_asked;

static void take_signal(int number)
{
    pause_asked = number == SIGUSR1;
    resume_asked = number == SIGUSR2;
}

/* --- start --- */

static uint64_t size_of(void *user, uint32_t file)
{
    const struct feeder *f = user;
    return catalog_file(f->catalog, file).size;
}

static uint64_t bytes_of(void *user, uint32_t file)
{
    const struct feeder *f = user;
    uint64_t size = catalog_file(f->catalog, file).size;
    return size < f->file_most ? size : f->file_most;
}

/* The feeder itself opens the file to find out. */
static bool is_unopened(void *user, uint32_t file)
{
    struct feeder *f = user;
    coverage_own(f->coverage, file);
    return pour_unopened(&f->pour, file);
}

static void note_answered(void *user, const struct feed_answer *answer)
{
    struct feeder *f = user;
    uint64_t ahead = answer->fed ? 0 : courses_ahead(&f->courses);
    headroom_answer(&f->headroom, answer->file, answer->bytes, answer->fed, ahead);
}

static bool sees_file(void *user, uint32_t file)
{
    const struct feeder *f = user;
    return f->pace && pace_sees(f->pace, file);
}

static _Noreturn void feeder_fail(const char *what, int error)
{
    log_error("%s: %s", what, strerror(-error));
    exit(1);
}

/* Lowers the feeder's priority. Failures do not matter. */
static void step_back(void)
{
    char score[16];
    int n = snprintf(score, sizeof score, "%d", OOM_SCORE);
    CLEANUP_CLOSE int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0)
        file_write_all(fd, score, (size_t)n);
    sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
}

/* Wait until the keeper has written this process's number: the server needs it to recognise the feeder's reads. */
static void await_number(const struct feeder *f)
{
    for (int i = 0; i < START_MS && atomic_load(&f->feed->feeder) != (uint32_t)getpid(); i++)
        clock_sleep(MILLISECOND);
    if (atomic_load(&f->feed->feeder) != (uint32_t)getpid())
        exit(1);
}

/* The keeper has blocked them until now. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = take_signal};
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGUSR1);
    sigaddset(&both, SIGUSR2);
    action.sa_mask = both;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    signal(SIGIO, SIG_IGN); /* sent for leases */
    sigprocmask(SIG_UNBLOCK, &both, NULL);
}

static void feeder_prepare(struct feeder *f)
{
    process_ignore_signals();
    catch_signals();
    prctl(PR_SET_NAME, shown);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    f->keeper = getppid();
    int log = handover_has(FD_LOG) ? FD_LOG : STDERR_FILENO;
    log_open("dealfs-feeder", log, false);
    int error = handover_open(false, &f->handover);
    if (error)
        feeder_fail("map the mount's memory", error);
    f->feed = handover_feed(f->handover);
    atomic_store(&f->feed->paused, 0);
    error = config_read_sealed(FD_CONFIG, &f->config);
    if (error)
        feeder_fail("read the mount's configuration", error);
    log_open("dealfs-feeder", log, f->config.syslog);
    if (f->keeper != (pid_t)atomic_load(&f->handover->keeper))
        exit(1);
    if (chdir("/"))
        feeder_fail("change to /", -errno);
    step_back();
    await_number(f);
}

static void feeder_open(struct feeder *f)
{
    int error = catalog_open_fd(FD_CATALOG, &f->catalog);
    if (error)
        feeder_fail("open the catalog", error);
    error = headroom_init(&f->headroom, f->config.feed, catalog_files(f->catalog));
    if (error)
        feeder_fail("open the table of fed files", error);
    const struct coverage_rules rules = {size_of, is_unopened, note_answered, f};
    error = coverage_create(f->feed, catalog_files(f->catalog), &rules, &f->coverage);
    if (error)
        feeder_fail("open the table of reads", error);
    error = foresee_create(&f->config, f->catalog, f->feed, &f->courses, &f->foresight);
    if (error)
        feeder_fail("start the prediction of loaders", error);
    error = pour_init(&f->pour, f->catalog, f->config.mountpoint, f->config.data_minor);
    if (error)
        feeder_fail(f->config.mountpoint, error);
    f->files = (struct window_files){bytes_of, sees_file, f};
    f->book = (struct recipe_book){
        .catalog = f->catalog, .desk = {f->config.control, f->config.control_minor}, .directory = f->config.state};
    f->file_most = f->book.most = f->config.feed / FILE_SHARE;
    throttle_init(&f->throttle, &f->feed->served, f->config.source_threads);
    error = pace_create(f->catalog, f->config.mountpoint, &f->pace);
    if (error)
        log_warning("make an inotify instance: %s: the loaders' progress is unknown, so only the first files of a plan "
                    "are read ahead",
                    strerror(-error));
    else if (pace_watch_rest(f->pace))
        atomic_store(&f->feed->watcher, (uint32_t)getpid());
}

/* --- positions --- */

/* For lists without a request, the window knows the loader's position. */
static void publish_list(const struct feed_course *c, uint32_t list, struct feed_rank *r)
{
    const struct window *w = &c->window[list];
    if (atomic_load(&r->number) != c->number) {
        atomic_store(&r->number, 0);
        atomic_store(&r->asked, 0);
        atomic_store(&r->closed, 0);
    }
    atomic_store(&r->rank, c->rank[list]);
    atomic_store(&r->samples, w->count);
    if (!c->coverage || !coverage_publish(c->coverage, list, r)) {
        atomic_store(&r->reached, w->reached);
        atomic_store(&r->read, w->read < w->count ? w->read : w->count);
        atomic_store(&r->late, w->late);
        atomic_store(&r->again, w->again);
        atomic_store(&r->flags, 0);
        atomic_store(&r->seen, c->seen[list]);
    }
    if (c->left[list])
        atomic_fetch_or(&r->flags, FEED_LEFT);
    atomic_store(&r->fed, w->fed);
    atomic_store(&r->ahead, w->ahead);
    atomic_store(&r->number, c->number);
}

static void feeder_publish(struct feeder *f)
{
    for (int i = 0; i < f->courses.count; i++) {
        const struct feed_course *c = f->courses.course[i];
        for (uint32_t list = 0; c->slot >= 0 && list < c->ranks; list++)
            publish_list(c, list, &f->feed->rank[c->slot][list]);
    }
    atomic_store_explicit(&f->feed->window, headroom_bytes(&f->headroom), memory_order_relaxed);
    atomic_store_explicit(&f->feed->ahead, courses_ahead(&f->courses), memory_order_relaxed);
}

/* --- reads --- */

/* Called when events have arrived, before they are matched. A loader may begin to read right after its request, so
 * first look for new plans, or its reads would count for another epoch. Also take the server's notes: they precede the
 * loader's reads. */
static void note_taken(void *user)
{
    struct feeder *f = user;
    plans_look(f, &pause_asked);
    coverage_take_notes(f->coverage);
}

static void note_read(void *user, uint32_t file)
{
    struct feeder *f = user;
    coverage_event(f->coverage, file, COVERAGE_ACCESS, f->now);
    headroom_read(&f->headroom, file, bytes_of(f, file));
    if (!foresee_read(f->foresight, file))
        courses_read(&f->courses, file, f->now);
}

static void note_closed(void *user, uint32_t file)
{
    struct feeder *f = user;
    coverage_event(f->coverage, file, COVERAGE_CLOSE, f->now);
}

static void note_lost(void *user)
{
    struct feeder *f = user;
    log_limited(LOG_LEVEL_WARNING, 1,
                "the queue of inotify was full, so some reads were not seen: raise fs.inotify.max_queued_events");
    coverage_lost(f->coverage, FEED_OVERFLOWED);
}

/* --- feeding --- */

/* False: the data mount is gone. */
static bool feed_file(struct feeder *f, const struct course_read *next)
{
    const struct feed_course *c = next->course;
    uint32_t sample = c->file[c->start[next->list] + next->position];
    uint32_t file = c->records ? samples_file(c->records, sample) : sample;
    uint64_t from = c->records ? samples_offset(c->records, sample) : 0;
    uint64_t bytes = c->records ? c->sizes.bytes(c->sizes.user, sample) : bytes_of(f, file);
    if (bytes == 0)
        return true;
    if (sees_file(f, file))
        coverage_own(f->coverage, file);
    if (!c->records && sees_file(f, file) && size_of(f, file) == bytes)
        headroom_feed(&f->headroom, file);
    int error = pour_range(&f->pour, file, from, bytes);
    if (error)
        log_debug("feeder", "file %u: %s", file, strerror(-error));
    return error != -ENODEV && error != -ENOTCONN;
}

/* Feed some files. Returns nanoseconds until there may be more to do. */
static uint64_t feeder_burst(struct feeder *f)
{
    const uint64_t idle = IDLE_MS * MILLISECOND;
    uint64_t now = clock_now();
    uint64_t wait = f->courses.count ? throttle_wait(&f->throttle, now) : idle;
    struct course_read next;
    f->courses.room = headroom_bytes(&f->headroom);
    for (int i = 0; !wait && i < THROTTLE_BURST && !pause_asked; i++) {
        if (!courses_take(&f->courses, now, &next))
            wait = idle;
        else if (!feed_file(f, &next))
            wait = SECOND;
    }
    return wait;
}

/* Waits for the end of a pause; nothing of the mount is open meanwhile. */
static void feeder_pause(struct feeder *f)
{
    uint64_t end = 0;
    prctl(PR_SET_NAME, shown_paused);
    atomic_store(&f->feed->paused, 1);
    do {
        if (pause_asked)
            end = clock_now() + PAUSE_S * SECOND;
        pause_asked = 0;
        ready_wait(NULL, 0, PAUSE_MS);
    } while (!resume_asked && clock_now() < end);
    atomic_store(&f->feed->paused, 0);
    prctl(PR_SET_NAME, shown);
}

static bool feeder_goes_on(const struct feeder *f)
{
    uint32_t flags = atomic_load(&f->handover->flags);
    return getppid() == f->keeper && !(flags & (HANDOVER_ENDED | HANDOVER_LEAVE | HANDOVER_ABANDONED));
}

/* Lets reads accumulate, so that not each of them costs a loader a context switch. */
static void feeder_sleep(const struct feeder *f, uint64_t wait)
{
    struct pollfd seen = {.fd = f->pace ? pace_fd(f->pace) : -1, .events = POLLIN};
    uint64_t longest = coverage_any(f->coverage) ? END_MS * MILLISECOND : wait;
    int milliseconds = (int)((longest < wait ? longest : wait) / MILLISECOND);
    if (wait >= IDLE_MS * MILLISECOND && ready_wait(&seen, 1, milliseconds) > 0)
        clock_sleep(GATHER_US * 1000);
    else if (wait < IDLE_MS * MILLISECOND)
        clock_sleep(wait);
}

/* Call it before plans_look: loaders of records report their position before their end. */
static void take_told(struct feeder *f)
{
    for (int i = 0; i < f->courses.count; i++) {
        struct feed_course *c = f->courses.course[i];
        for (uint32_t list = 0; c->records && c->slot >= 0 && list < c->ranks; list++) {
            uint64_t told = atomic_load(&f->feed->told[c->slot][list]);
            if (!told || (told - 1 == c->window[list].reached && c->seen[list]))
                continue;
            courses_told(&f->courses, c, list, told - 1, f->now);
            if (c->coverage)
                coverage_told(c->coverage, list, c->window[list].reached, f->now);
        }
    }
}

/* Take events. Lists whose end was known before get their reports, if all events were taken. */
static bool take_events(struct feeder *f)
{
    const struct pace_events events = {note_taken, note_read, note_closed, note_lost, f};
    bool drained = true;
    coverage_arm(f->coverage);
    take_told(f);
    if (f->pace && !pace_take(f->pace, &events, &drained))
        return false;
    if (drained && coverage_settle(f->coverage, clock_now()))
        feeder_publish(f);
    return true;
}

static void feeder_run(struct feeder *f)
{
    uint64_t looked = 0, number = 0;
    while (feeder_goes_on(f)) {
        uint64_t now = clock_now(), last = atomic_load(&f->feed->numbers);
        if (pause_asked)
            feeder_pause(f);
        if (last != number || now - looked >= IDLE_MS * MILLISECOND / 2) {
            number = last;
            plans_look(f, &pause_asked);
            coverage_look(f->coverage, now);
            feeder_publish(f);
            uint64_t wrong = foresee_step(f->foresight, now);
            if (wrong)
                plans_drop_guesses(f, wrong);
            looked = now;
        }
        f->now = now;
        if (!take_events(f))
            break;
        uint64_t wait = feeder_burst(f);
        if (wait)
            feeder_sleep(f, wait);
    }
}

int main(int argc, char **argv)
{
    (void)argv;
    static struct feeder f;
    if (argc != 2) {
        fprintf(stderr, "usage: dealfs-feeder STATE (it is started by dealfs-keeper)\n");
        return 2;
    }
    feeder_prepare(&f);
    feeder_open(&f);
    feeder_run(&f);
    plans_drop(&f);
    courses_clear(&f.courses);
    coverage_destroy(f.coverage);
    foresee_destroy(f.foresight);
    recipe_book_fini(&f.book);
    throttle_fini(&f.throttle);
    headroom_fini(&f.headroom);
    pace_destroy(f.pace);
    catalog_close(f.catalog);
    config_fini(&f.config);
    handover_close(f.handover);
    return 0;
}
