/* Runs dealfs-resizer with the owner's rights, and shows its progress. */
#include "cli/base/child.h"
#include "cli/base/command.h"
#include "cli/base/interrupt.h"
#include "cli/base/place.h"
#include "cli/base/progress.h"
#include "cli/mount/steps.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/process.h"
#include "fs/base/size.h"
#include "fs/catalog/copy.h"
#include "fs/catalog/derived.h"
#include "fs/wire/handover.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { ABOVE_ALL = 64, LINE_MOST = 4096 };
enum { FD_OF_STATE = 3, FD_OF_SOURCE = 4, FD_OF_RAM = 5, FD_OF_COURIER = 6, FD_OF_NOTES = 7 };
enum { STARTS_MOST = 4 }; /* if it is killed repeatedly, its work is the cause */

struct resize_run {
    struct start *start;
    pid_t pid;
    int notes;   /* from which the next one resumes if this one dies: fs/resize/notes.h */
    int stopped; /* the signal that told it to end */
    struct progress_bar progress;
    char label[80];
    uint32_t made, all;
    uint64_t began;
};

/* --- the program --- */

/* Its standard input would be root's terminal, and it may be another user's process. */
static int take_descriptors(const struct resize_run *r, int out)
{
    enum { COUNT = 8 };
    const struct start *s = r->start;
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC); /* its number may become another one of these */
    const int courier = s->options.courier ? s->options.courier : -1;
    const int from[COUNT] = {null, out, s->log, s->state_fd, s->source_fd, s->tiers.ram.folder.lock, courier, r->notes};
    const int to[COUNT] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, FD_OF_STATE,
                           FD_OF_SOURCE, FD_OF_RAM,     FD_OF_COURIER, FD_OF_NOTES};
    int high[COUNT];
    if (null < 0)
        return -errno;
    for (int i = 0; i < COUNT; i++)
        if ((high[i] = fcntl(from[i] < 0 ? out : from[i], F_DUPFD, ABOVE_ALL)) < 0)
            return -errno;
    for (int i = 0; i < COUNT; i++)
        if (dup2(high[i], to[i]) < 0)
            return -errno;
    return close_range(FD_OF_NOTES + 1, ~0u, 0) < 0 ? -errno : 0;
}

static _Noreturn void become_resizer(const struct resize_run *r, const char *program, int out)
{
    const struct start *s = r->start;
    char text[6][32], detached[32];
    const struct tiers *t = &s->tiers;
    snprintf(text[0], sizeof text[0], "%d", s->options.resize);
    snprintf(text[1], sizeof text[1], "%d", options_quality(&s->options));
    snprintf(text[2], sizeof text[2], "%" PRIu64, t->ram.bytes);
    snprintf(text[3], sizeof text[3], "%" PRIu64, t->ssd.bytes);
    snprintf(text[4], sizeof text[4], "%d", s->options.courier ? FD_OF_COURIER : -1);
    snprintf(text[5], sizeof text[5], "%d", FD_OF_NOTES);
    snprintf(detached, sizeof detached, "/proc/self/fd/%d", FD_OF_RAM);
    process_reset_signals();
    setsid();
    umask(077);
    int error = take_descriptors(r, out);
    if (!error) {
        execl(program, "dealfs-resizer", text[0], text[1], t->ram.folder.path ? t->ram.folder.path : detached, text[2],
              t->ssd.folder.path ? t->ssd.folder.path : "", text[3], text[4], text[5], (char *)NULL);
        error = -errno;
    }
    dprintf(STDOUT_FILENO, "e start %s: %s\n", program, strerror(-error));
    _exit(1);
}

static int start_resizer(struct resize_run *r, int *from, struct str *why)
{
    char program[PATH_MAX];
    int error = handover_find_program("dealfs-resizer", program, sizeof program);
    if (error)
        return place_fail(why, "find", "dealfs-resizer", "neither beside dealfs nor in ../libexec/dealfs", error);
    r->pid = child_fork(from);
    if (r->pid == 0)
        become_resizer(r, program, *from);
    return r->pid < 0 ? place_error(why, "start", program, r->pid) : 0;
}

/* --- what it says --- */

static void show_progress(struct resize_run *r, const char *line)
{
    uint64_t from, to;
    if (sscanf(line, "p %u %u %" SCNu64 " %" SCNu64, &r->made, &r->all, &from, &to) != 4)
        return;
    if (r->start->options.courier)
        return; /* it shows it for all nodes */
    snprintf(r->label, sizeof r->label, "resizing %s -> %s", size_text(from), size_text(to));
    progress_show(&r->progress, &(struct progress_now){.files = r->made, .files_total = r->all});
}

/* The first signal lets it store its results; after the second one we do not wait, even for a source that hangs. */
static void pass_signal_on(struct resize_run *r)
{
    if (!interrupted)
        return;
    kill(r->pid, r->stopped ? SIGKILL : SIGTERM);
    r->stopped = interrupted;
    interrupted = 0;
}

static bool next_line(struct resize_run *r, FILE *lines, char *line)
{
    for (;;) {
        bool good = fgets(line, LINE_MOST, lines), again = !good && ferror(lines) && errno == EINTR;
        pass_signal_on(r);
        if (!again)
            return good;
        clearerr(lines);
    }
}

static void follow_resizer(struct resize_run *r, int from, struct str *why)
{
    CLEANUP_FCLOSE FILE *lines = fdopen(from, "r");
    char line[LINE_MOST];
    if (!lines)
        close(from);
    while (lines && next_line(r, lines, line)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == 'p')
            show_progress(r, line);
        else if (line[0] == 'e' && line[1] == ' ' && why->length == 0)
            str_add_printable(why, line + 2, strlen(line + 2));
    }
    interrupted = r->stopped ? r->stopped : interrupted;
}

static int judge_end(int status, struct str *why)
{
    if (interrupted) {
        str_clear(why);
        return str_fail(why, -EINTR, "interrupted");
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    if (why->length == 0 && WIFSIGNALED(status))
        str_addf(why, "dealfs-resizer was killed %d times, the last time by signal %d", STARTS_MOST, WTERMSIG(status));
    else if (why->length == 0)
        str_addf(why, "dealfs-resizer ended without a message (status 0x%x)", status);
    return -EIO;
}

/* The courier notices its end when our end of its socket is closed as well. */
static int run_resizer(struct resize_run *r, struct str *why)
{
    CLEANUP_CLOSE int notes = r->notes = memfd_create("dealfs-resizer", MFD_CLOEXEC);
    int from, status = 0, error = notes < 0 ? place_error(why, "share", "memory", -errno) : 0;
    progress_begin(&r->progress, r->label, stderr);
    r->began = clock_now();
    for (int starts = 0; !error && starts < STARTS_MOST; starts++) {
        str_clear(why);
        error = start_resizer(r, &from, why);
        if (error)
            break;
        follow_resizer(r, from, why);
        while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (interrupted || !WIFSIGNALED(status))
            break;
    }
    progress_end(&r->progress);
    if (r->start->options.courier)
        close(r->start->options.courier);
    return error ? error : judge_end(status, why);
}

/* --- what has come of it --- */

static int open_resized(struct start *s)
{
    CLEANUP_CLOSE int from = openat(s->state_fd, "resized", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    uint64_t length = derived_length(s->catalog);
    int error = from < 0 ? -errno : copy_make(s->state_fd, length, &s->resized);
    return error ? error : copy_fill_derived(s->resized, from, length);
}

/* The derived catalog replaces the source's. */
static int install_derived(struct start *s, const struct derived *d)
{
    close(steal_fd(s->copy));
    int error = copy_make(s->state_fd, catalog_memory(d->original), &s->copy);
    if (!error)
        error = copy_derive(s->copy, d);
    if (error)
        return error;
    catalog_close(s->catalog);
    s->catalog = NULL;
    return catalog_open_fd(s->copy, &s->catalog);
}

static void say_resized(const struct resize_run *r, const struct derived *d)
{
    uint64_t files = 0, from = 0, to = 0, passed = 0;
    double seconds = (double)(clock_now() - r->began) / 1e9;
    for (uint32_t file = 0; file < d->files; file++) {
        const struct derived_record *record = &d->record[file];
        bool is_made = record->outcome == DERIVED_MADE;
        files += is_made;
        from += is_made ? catalog_file(d->original, file).size : 0;
        to += is_made ? record->size : 0;
        passed += record->outcome > DERIVED_MADE;
    }
    const char *made = count_text(files), *before = size_text(from), *after = size_text(to);
    if (r->all > 0)
        command_note(r->start->to, "%s images are resized to %u pixels, %s -> %s; %s files were new, %.0f/s", made,
                     d->terms.side, before, after, count_text(r->made),
                     (double)r->made / (seconds > 0.001 ? seconds : 0.001));
    else
        command_note(
            r->start->to, "%s images are resized to %u pixels, %s -> %s, as at the last mount%s", made, d->terms.side,
            before, after,
            r->start->options.ssd ? "" : "; images that were cached only in RAM are resized again when they are read");
    if (passed > 0)
        command_note(r->start->to,
                     "%" PRIu64
                     " files are served unchanged: `dealfs status --json` shows the reasons, the log the names",
                     passed);
}

static int take_resized(struct resize_run *r, struct str *why)
{
    struct start *s = r->start;
    struct derived *d;
    int error = open_resized(s);
    if (!error)
        error = derived_open(s->resized, &d);
    if (error)
        return place_error(why, "read the list of resized images in", s->config.state, error);
    if (d->terms.side != (uint32_t)s->options.resize || d->terms.quality != (uint32_t)options_quality(&s->options) ||
        memcmp(catalog_versions(d->original), catalog_versions(s->catalog), sizeof(struct digest)) != 0)
        error = place_fail(why, "the list of resized images in", s->config.state,
                           "is of another dataset, or of other options", -ESTALE);
    if (!error)
        error = install_derived(s, d);
    if (!error && (!s->options.local || s->options.node == 0))
        say_resized(r, d);
    derived_close(d);
    return why->length ? error : place_error(why, "install the catalog in", s->config.state, error);
}

int resize_source(struct start *s, struct str *why)
{
    struct resize_run r = {.start = s};
    if (!s->options.resize)
        return 0;
    if (s->options.wait_join) /* the first world brings it */
        return copy_make(s->state_fd, 0, &s->resized);
    int error = s->resized_given ? 0 : run_resizer(&r, why);
    if (faccessat(s->state_fd, "resized", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        s->state_made = s->tiers.ssd.folder.made = false; /* what was made is worth keeping in any case */
    return error ? error : take_resized(&r, why);
}
