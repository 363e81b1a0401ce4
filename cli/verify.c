/* `dealfs verify`: the mount against its source, every byte and attribute. */
#include "cli/command.h"

#include "cli/live.h"
#include "cli/progress.h"
#include "cli/request.h"
#include "cli/walk.h"
#include "fs/base/cleanup.h"
#include "fs/base/json.h"
#include "fs/base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

enum { JOBS_DEFAULT = 4, JOBS_MOST = 256 };

struct verify {
    struct live live;
    int jobs;
    struct progress progress;
    struct progress_now total;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    interrupted = signal;
}

static void show(void *user, const struct walk_counts *counts)
{
    struct verify *verify = user;
    struct progress_now now = verify->total;

    now.files = counts->files;
    now.bytes = counts->bytes;
    progress_show(&verify->progress, &now);
}

static int summarize(const struct verify *verify, const struct walk_counts *counts)
{
    char files[COUNT_TEXT], directories[COUNT_TEXT], links[COUNT_TEXT], bytes[SIZE_TEXT];

    printf("%s files, %s directories and %s symlinks are the same, %s\n",
           count_format(counts->files, files, sizeof files),
           count_format(counts->directories, directories, sizeof directories),
           count_format(counts->links, links, sizeof links), size_format(counts->bytes, bytes, sizeof bytes));
    if (counts->left_out > 0)
        printf("%" PRIu64 " sockets, fifos or devices of the source are not in the mount\n", counts->left_out);
    if (counts->unreadable > 0)
        return command_fail("verify %s: %" PRIu64 " entries could not be compared: %s", verify->live.mountpoint,
                            counts->unreadable, strerror(EACCES));
    return COMMAND_DONE;
}

static int compare(struct verify *verify, int source, int mount)
{
    CLEANUP_STR struct str difference = STR_INIT;
    struct walk_counts counts = {0};
    struct walk_options options = {.jobs = verify->jobs, .progress = show, .user = verify, .stop = &interrupted};

    progress_begin(&verify->progress, "verifying", stderr);
    int result = walk_compare(source, mount, &options, &counts, &difference);
    progress_end(&verify->progress);
    if (result == 1)
        return command_fail("%s differs from its source: %s", verify->live.mountpoint,
                            difference.failed ? "out of memory" : difference.data);
    if (result < 0)
        return command_fail("verify %s: %s", verify->live.mountpoint,
                            result == -ECANCELED ? "interrupted" : strerror(-result));
    return summarize(verify, &counts);
}

/* Only for the bar: without them it has no end. */
static void read_totals(struct verify *verify)
{
    CLEANUP_STR struct str status = STR_INIT;

    if (request_file(verify->live.control, "status", &status) < 0)
        return;
    json_find_uint(status.data, status.length, "catalog.files", &verify->total.files_total);
    json_find_uint(status.data, status.length, "catalog.bytes", &verify->total.bytes_total);
}

static int verify_mount(struct verify *verify, const char *mountpoint)
{
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_CLOSE int source = -1, mount = -1;
    struct sigaction action = {.sa_handler = interrupt};

    if (live_find(mountpoint, &verify->live, &why) < 0)
        return command_fail("%s", why.failed ? "out of memory" : why.data);
    if (verify->live.health != LIVE_UP)
        return command_fail("%s: %s", mountpoint, live_health_text(verify->live.health));
    source = open(verify->live.source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (source < 0)
        return command_fail("open %s: %s", verify->live.source, strerror(errno));
    mount = open(verify->live.mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (mount < 0)
        return command_fail("open %s: %s", verify->live.mountpoint, strerror(errno));
    if (verify->live.control)
        read_totals(verify);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return compare(verify, source, mount);
}

static int run(int argc, char **argv)
{
    static const struct option options[] = {{"jobs", required_argument, NULL, 'j'}, {0}};
    struct verify verify = {.jobs = JOBS_DEFAULT};
    uint64_t jobs;
    int option;

    while ((option = getopt_long(argc, argv, ":j:", options, NULL)) != -1) {
        if (option != 'j')
            return command_bad_option(&command_verify, option, argv);
        if (number_parse(optarg, 1, JOBS_MOST, &jobs) < 0)
            return command_usage(&command_verify, "--jobs %s: not a number from 1 to %d", optarg, JOBS_MOST);
        verify.jobs = (int)jobs;
    }
    if (argc - optind != 1)
        return command_usage(&command_verify, "one MOUNTPOINT is needed");
    int status = verify_mount(&verify, argv[optind]);
    live_fini(&verify.live);
    return status;
}

const struct command command_verify = {
    .name = "verify",
    .arguments = "[--jobs N] MOUNTPOINT",
    .summary = "compare a mount with its source, every byte",
    .help = "  --jobs N   files compared at once (4)\n",
    .run = run,
};
