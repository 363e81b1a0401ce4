/* `dealfs verify`: compares the mount with its source, every byte and attribute. */
#include "cli/base/options.h"

#include "cli/base/interrupt.h"
#include "cli/live/client.h"
#include "cli/live/figures.h"
#include "cli/live/walk.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/size.h"
#include "fs/catalog/derived.h"
#include "fs/image/crew.h"
#include "fs/wire/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

enum { JOBS_DEFAULT = 4, JOBS_MOST = 256 };

static int print_counts(const struct live *live, const struct walk_counts *counts)
{
    printf("%s files, %s directories and %s symlinks are the same, %s\n", count_text(counts->files),
           count_text(counts->directories), count_text(counts->links), size_text(counts->bytes));
    if (counts->left_out > 0)
        printf("%" PRIu64 " sockets, fifos or devices of the source are not in the mount\n", counts->left_out);
    if (counts->unreadable > 0)
        return command_fail("verify %s: %" PRIu64 " entries could not be compared: %s", live->mountpoint,
                            counts->unreadable, strerror(EACCES));
    return COMMAND_DONE;
}

static struct progress_now read_totals(const struct live *live)
{
    CLEANUP_STR struct str status = STR_INIT;
    if (client_file(live, "status", &status) < 0)
        return (struct progress_now){0};
    return (struct progress_now){.files_total = figures_number(&status, "catalog.files"),
                                 .bytes_total = figures_number(&status, "catalog.bytes")};
}

static bool is_interrupted(void *user)
{
    (void)user;
    return interrupted;
}

/* With resize=: finds the records of resized files, and the crew that makes them again. */
static int find_resized(const struct live *live, struct walk_options *options, struct derived **derived)
{
    static const uint64_t most = UINT64_C(16) << 30;
    CLEANUP_CLOSE int state = -1, fd = -1, copy = memfd_create("dealfs-resized", MFD_CLOEXEC);
    char program[PATH_MAX];
    if (!live->configured || !live->config.resize)
        return COMMAND_DONE;
    state = open(live->config.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    fd = state < 0 ? -1 : openat(state, "resized", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    /* the mount's owner may change it while we, perhaps as root, look at it */
    int error = fd < 0 || copy < 0 ? -errno : file_copy(fd, copy, most);
    if (!error)
        error = derived_open(copy, derived);
    if (!error)
        error = handover_find_program("dealfs-resizer", program, sizeof program);
    if (!error)
        error = crew_create(program, &options->crew);
    if (!error)
        crew_heed(options->crew, (struct crew_care){is_interrupted, NULL});
    options->derived = *derived;
    return error ? command_fail("read what was resized in %s: %s", live->config.state, strerror(-error)) : COMMAND_DONE;
}

static int compare_live(const struct live *live, struct walk_options *options)
{
    CLEANUP_STR struct str difference = STR_INIT;
    CLEANUP_CLOSE int source = open(live->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC), mount = -1;
    struct walk_counts counts = {0};
    struct progress_bar progress;
    if (source < 0)
        return command_fail("open %s: %s", live->source, strerror(errno));
    mount = open(live->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (mount < 0)
        return command_fail("open %s: %s", live->mountpoint, strerror(errno));
    options->progress = &progress;
    options->total = read_totals(live);
    interrupt_catch(SIGINT, SIGTERM);
    progress_begin(&progress, "verifying", stderr);
    int result = walk_compare(source, mount, options, &counts, &difference);
    progress_end(&progress);
    if (result == 1)
        return command_fail("%s differs from its source: %s", live->mountpoint, command_why(&difference, 0));
    if (result < 0)
        return command_fail("verify %s: %s", live->mountpoint,
                            result == -ECANCELED ? "interrupted" : strerror(-result));
    return print_counts(live, &counts);
}

static int verify_live(struct live *live, int jobs)
{
    struct walk_options options = {.jobs = jobs, .stop = &interrupted};
    struct derived *derived = NULL;
    int status = find_resized(live, &options, &derived);
    if (!status)
        status = client_become(live);
    if (!status)
        status = compare_live(live, &options);
    crew_destroy(options.crew);
    derived_close(derived);
    return status;
}

static int verify_command(int argc, char **argv)
{
    uint64_t jobs = JOBS_DEFAULT;
    CLEANUP_LIVE struct live live = {0};
    int status = command_options(&command_verify, &jobs, argc, argv);
    if (status)
        return status;
    if (argc - optind != 1)
        return command_usage(&command_verify, "one MOUNTPOINT is needed");
    if (client_find(argv[optind], LIVE_UP, &live))
        return COMMAND_FAILED;
    return verify_live(&live, (int)jobs);
}

static const struct command_option verify_options[] = {
    {"jobs", 'j', OPTION_NUMBER, "N", "files compared concurrently (4)", .most = JOBS_MOST},
    {0},
};

const struct command command_verify = {
    .name = "verify",
    .arguments = "[--jobs N] MOUNTPOINT",
    .summary = "compare every byte of a mount with its source",
    .options = verify_options,
    .run = verify_command,
};
