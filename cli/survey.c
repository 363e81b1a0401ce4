/* The scan as people see it. */
#include "cli/survey.h"

#include "cli/command.h"
#include "cli/progress.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/size.h"

#include <inttypes.h>
#include <string.h>

struct show {
    const struct survey *survey;
    bool terminal, drawn;
};

static int show_progress(void *user, const struct scan_progress *now)
{
    struct show *show = user;
    char files[COUNT_TEXT], directories[COUNT_TEXT], bytes[SIZE_TEXT];

    if (show->terminal) {
        fprintf(stderr, "\r\033[Kscanning: %s files, %s in %s directories", count_format(now->files, files, sizeof files),
                size_format(now->bytes, bytes, sizeof bytes),
                count_format(now->directories, directories, sizeof directories));
        fflush(stderr);
        show->drawn = true;
    }
    return show->survey->stop && *show->survey->stop;
}

static const char *plural(uint64_t n, const char *one, const char *many)
{
    return n == 1 ? one : many;
}

static void say_found(const struct survey *s, const struct catalog *c, const struct scan_progress *result)
{
    char files[COUNT_TEXT], directories[COUNT_TEXT], bytes[SIZE_TEXT], age[SIZE_TEXT];
    CLEANUP_STR struct str line = STR_INIT;
    uint64_t all = catalog_directories(c), now = clock_realtime(), then = catalog_scanned(c);

    str_add_printable(&line, s->source, strlen(s->source));
    str_addf(&line, ": %s %s, %s in %s %s", count_format(catalog_files(c), files, sizeof files),
             plural(catalog_files(c), "file", "files"), size_format(catalog_bytes(c), bytes, sizeof bytes),
             count_format(all, directories, sizeof directories), plural(all, "directory", "directories"));
    if (s->rescan == RESCAN_NEVER && result->reused >= all)
        str_addf(&line, ", as of %s ago", duration_format(now > then ? now - then : 0, age, sizeof age));
    else if (result->reused >= all)
        str_adds(&line, "; nothing has changed there since the last mount");
    else if (result->reused > 0)
        str_addf(&line, "; %s of them unchanged", count_format(result->reused, directories, sizeof directories));
    if (!line.failed)
        command_note(s->to, "%s", line.data);
}

static void note(FILE *to, uint64_t n, const char *one, const char *many)
{
    char number[COUNT_TEXT];

    if (n > 0)
        command_note(to, "%s %s", count_format(n, number, sizeof number), plural(n, one, many));
}

static void say_notes(FILE *to, const struct catalog_notes *n)
{
    note(to, n->links_to_files, "symlink to a file is shown as a symlink, and is no sample",
         "symlinks to files are shown as symlinks, and are no samples");
    note(to, n->specials, "socket, fifo or device is left out", "sockets, fifos and devices are left out");
    note(to, n->unreadable, "directory could not be read and is shown empty; a line above names it",
         "directories could not be read and are shown empty; lines above name them");
    if (n->hidden)
        command_note(to, "the source has a .dealfs of its own, which the mount hides");
}

int survey_run(const struct survey *s, struct catalog **catalog, struct str *why)
{
    struct show show = {.survey = s, .terminal = isatty(STDERR_FILENO)};
    struct scan_options options = {.rescan = s->rescan, .progress = show_progress, .user = &show};
    struct scan_progress result = {0};

    int error = scan_source(s->source_fd, s->path, &options, catalog, why, &result);
    if (show.drawn)
        fputs("\r\033[K", stderr);
    if (error == -ECANCELED) {
        str_clear(why);
        str_adds(why, "interrupted");
    }
    if (error)
        return error;
    say_found(s, *catalog, &result);
    say_notes(s->to, catalog_notes(*catalog));
    return 0;
}
