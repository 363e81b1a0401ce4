/* The scan with its messages. */
#include "cli/mount/survey.h"

#include "cli/base/command.h"
#include "cli/base/interrupt.h"
#include "cli/base/progress.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/size.h"

#include <inttypes.h>
#include <string.h>

enum { LOOKS = 64 }; /* concurrent: with a slow source each takes a millisecond, mostly waiting */

static int show_progress(void *user, const struct scan_progress *now)
{
    struct progress_bar *progress = user;
    if (progress->terminal) /* a log gets only the summary */
        progress_show(progress, &(struct progress_now){.files = now->files});
    return interrupted;
}

static const char *plural(uint64_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

static void say_found(const struct survey *s, const struct catalog *c, const struct scan_progress *result)
{
    CLEANUP_STR struct str line = STR_INIT;
    uint64_t all = catalog_directories(c), now = clock_realtime(), then = catalog_scanned(c);
    str_add_printable(&line, s->source, strlen(s->source));
    str_addf(&line, ": %s %s, %s in %s %s", count_text(catalog_files(c)), plural(catalog_files(c), "file", "files"),
             size_text(catalog_bytes(c)), count_text(all), plural(all, "directory", "directories"));
    if (s->scan.rescan == RESCAN_NEVER && result->reused >= all)
        str_addf(&line, ", as of %s ago", duration_text(now > then ? now - then : 0));
    else if (result->reused >= all && result->rewritten == 0)
        str_adds(&line, "; nothing has changed there since the last mount");
    else if (result->reused > 0)
        str_addf(&line, "; %s of them unchanged", count_text(result->reused));
    if (result->shared > 0)
        str_addf(&line, "; other nodes looked at %s of the files", count_text(result->shared));
    if (result->rewritten > 0)
        str_addf(&line, "; %s %s since the last mount", count_text(result->rewritten),
                 plural(result->rewritten, "file was rewritten", "files were rewritten"));
    if (!line.failed)
        command_note(s->to, "%s", line.data);
    if (s->scan.rescan == RESCAN_NAMES && result->reused > 0)
        command_note(s->to,
                     "rescan=names: files were not checked: if one was rewritten in place, its old bytes are served");
}

static void note_count(FILE *to, uint64_t n, const char *one, const char *many)
{
    if (n > 0)
        command_note(to, "%s %s", count_text(n), plural(n, one, many));
}

static uint64_t count_unkept(const struct catalog *c)
{
    uint64_t count = 0;
    for (uint32_t file = 0; file < catalog_files(c); file++)
        count += catalog_file(c, file).size > CATALOG_KEPT_MOST;
    return count;
}

static void say_notes(FILE *to, const struct catalog *c)
{
    const struct catalog_notes *n = catalog_notes(c);
    note_count(to, count_unkept(c), "file is larger than 16 TiB: it is not cached",
               "files are larger than 16 TiB: they are not cached");
    note_count(to, n->links_to_files, "symlink to a file is shown as a symlink, and is not a sample",
               "symlinks to files are shown as symlinks, and are not samples");
    note_count(to, n->specials, "socket, fifo or device is left out", "sockets, fifos and devices are left out");
    note_count(
        to, n->linked,
        "file has other hard links: each of its names in the source is a separate sample, cached separately",
        "files have other hard links: each of their names in the source is a separate sample, cached separately");
    note_count(to, n->unreadable, "directory could not be read and is shown empty; a line above names it",
               "directories could not be read and are shown empty; lines above name them");
    if (n->hidden)
        command_note(to, "the source has a .dealfs of its own, which the mount hides");
}

static struct scan_options options_of(const struct survey *s)
{
    struct scan_options options = s->scan;
    options.threads = options.threads > LOOKS ? options.threads : LOOKS;
    return options;
}

int survey_part(const struct survey *s, struct scan_part part)
{
    struct scan_options options = options_of(s);
    return scan_portion(s->source_fd, s->path, &options, part, s->scan.looked);
}

int survey_run(const struct survey *s, struct catalog **catalog, struct str *why)
{
    struct progress_bar progress;
    struct scan_options options = options_of(s);
    options.progress = show_progress;
    options.user = &progress;
    struct scan_progress result = {0};
    progress_begin(&progress, "scanning", stderr);
    int error = scan_source(s->source_fd, s->path, &options, catalog, why, &result);
    progress_end(&progress);
    if (error == -ECANCELED) {
        str_clear(why);
        str_adds(why, "interrupted");
    }
    if (error)
        return error;
    say_found(s, *catalog, &result);
    say_notes(s->to, *catalog);
    return 0;
}
