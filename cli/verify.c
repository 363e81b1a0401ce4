/* `dealfs verify`: compares the mount with its source, every byte and attribute. */
#include "cli/base/options.h"

#include "cli/base/interrupt.h"
#include "cli/base/memory.h"
#include "cli/live/client.h"
#include "cli/live/figures.h"
#include "cli/live/owner-file.h"
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

/* From the mount's status. */
struct totals {
    uint64_t files, entries, bytes;
};

static struct totals read_totals(const struct live *live)
{
    CLEANUP_STR struct str status = STR_INIT;
    if (client_file(live, "status", &status) < 0)
        return (struct totals){0};
    uint64_t files = figures_number(&status, "catalog.files");
    return (struct totals){.files = files,
                           .entries = files + figures_number(&status, "catalog.directories") +
                                      figures_number(&status, "catalog.links"),
                           .bytes = figures_number(&status, "catalog.bytes")};
}

/* The most bytes that the list of resized files may have. The mount's user can change the file, and the status: neither
 * may take up the memory of this process, which is perhaps root's. */
static uint64_t most_resized(const struct live *live)
{
    enum { FIXED = 1 << 20, PER_ENTRY = 8192 /* names and targets of symlinks have up to 255 and 4,095 */, SHARE = 4 };
    struct memory memory = {.available = 0};
    uint64_t entries = read_totals(live).entries, room;
    uint64_t wanted = entries < (UINT64_MAX - FIXED) / PER_ENTRY ? FIXED + entries * PER_ENTRY : UINT64_MAX;
    room = memory_look("", &memory) ? FIXED : memory.available / SHARE;
    return wanted < room ? wanted : room;
}

static bool is_interrupted(void *user)
{
    (void)user;
    return interrupted;
}

/* With resize=: finds the records of resized files, and the crew that makes them again. The records are copied, because
 * the mount's owner may change the file meanwhile. */
static int find_resized(const struct live *live, struct walk_options *options, struct derived **derived)
{
    char program[PATH_MAX];
    if (!live->configured || !live->config.resize)
        return COMMAND_DONE;
    uint64_t most = most_resized(live);
    CLEANUP_CLOSE int fd = owner_file_open(live, "resized", most), copy = memfd_create("dealfs-resized", MFD_CLOEXEC);
    int error = fd < 0 ? fd : copy < 0 ? -errno : file_copy(fd, copy, most);
    if (!error)
        error = derived_open(copy, derived);
    if (!error)
        error = handover_find_program("dealfs-resizer", program, sizeof program);
    if (!error)
        error = crew_create(program, &options->crew);
    if (!error) {
        crew_heed(options->crew, (struct crew_care){is_interrupted, NULL});
        crew_allow(options->crew, CREW_SHRINK_MEMORY);
    }
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
    const struct totals totals = read_totals(live);
    options->total = (struct progress_now){.files_total = totals.files, .bytes_total = totals.bytes};
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
    struct walk_options options = {
        .jobs = jobs, .acls = live->configured && live->config.allow_other, .stop = &interrupted};
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
