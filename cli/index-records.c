/* `dealfs index`: makes a record list of what is inside containers. */
#include "cli/base/options.h"

#include "cli/base/interrupt.h"
#include "cli/base/place.h"
#include "cli/base/progress.h"
#include "cli/live/client.h"
#include "cli/live/containers.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

struct index_request {
    struct containers_wish wish;
    struct containers_found found;
    const char *mountpoint;
    const char *name;   /* of the list; NULL: written to `output` */
    const char *output; /* a file, or "-" */
    const char *format;
    char *under;
    uint64_t jobs;
    int spool;
};

/* --- output --- */

/* A file without a name in the directory for temporary files, else memory. */
static int open_spool(void)
{
    const char *folder = getenv("TMPDIR");
    int fd = open(folder ? folder : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    return fd < 0 ? memfd_create("dealfs-index", MFD_CLOEXEC) : fd;
}

static int fail_index(const struct index_request *r, const struct str *why, int error)
{
    return command_fail("index %s: %s", r->mountpoint, interrupted ? "interrupted" : command_why(why, error));
}

static int upload_list(const struct index_request *r, const struct live *live)
{
    CLEANUP_STR struct str line = STR_INIT, reply = STR_INIT, why = STR_INIT;
    str_adds(&line, "samples name=");
    str_add_percent(&line, r->name, strlen(r->name));
    str_addf(&line, " form=%s", r->found.text ? "records" : "packed");
    if (r->found.format)
        str_addf(&line, " format=%s", r->found.format->stream);
    str_adds(&line, "\n");
    int error = client_wait(live, &line, r->spool, &reply, &why);
    return error ? fail_index(r, &why, error) : COMMAND_DONE;
}

static int write_to(int spool, const char *path)
{
    if (strcmp(path, "-") == 0)
        return file_copy(spool, STDOUT_FILENO, UINT64_MAX - 1);
    CLEANUP_CLOSE int special = place_open_special(path);
    if (special == -ENOENT)
        return file_copy_atomic(spool, path);
    return special < 0 ? special : file_copy(spool, special, UINT64_MAX - 1);
}

static int write_output(struct index_request *r)
{
    int error = lseek(r->spool, 0, SEEK_SET) < 0 ? -errno : write_to(r->spool, r->output);
    return error ? command_fail("write %s: %s", r->output, strerror(-error)) : COMMAND_DONE;
}

static void print_found(const struct index_request *r, uint64_t elapsed)
{
    const struct containers_found *f = &r->found;
    FILE *to = r->output ? stderr : stdout;
    fprintf(to, "%s records in %s containers%s%s, %s, in %s\n", count_text(f->records), count_text(f->containers),
            f->format ? " of format " : "", f->format ? f->format->name : "", size_text(f->bytes),
            duration_text(elapsed));
    if (f->left_out > 0)
        fprintf(to, "%s containers were left out\n", count_text(f->left_out));
}

static int index_live(struct index_request *r, struct live *live)
{
    CLEANUP_STR struct str why = STR_INIT;
    uint64_t began = clock_now();
    int status = client_become(live);
    if (status)
        return status;
    CLEANUP_CLOSE int spool = r->spool = open_spool();
    if (spool < 0)
        return command_fail("make a temporary file: %s", strerror(errno));
    interrupt_catch(SIGINT, SIGTERM);
    int error = containers_index(live, &r->wish, spool, &r->found, &why);
    if (error)
        return fail_index(r, &why, error);
    status = r->output ? write_output(r) : upload_list(r, live);
    if (!status)
        print_found(r, clock_now() - began);
    return status;
}

/* --- options --- */

static int parse_format(const char *text, struct containers_wish *wish)
{
    static const char fixed[] = "fixed=";
    uint64_t row;
    bool rows = strncmp(text, fixed, strlen(fixed)) == 0;
    if (rows && number_parse(text + strlen(fixed), 1, UINT32_MAX, &row) < 0)
        return command_usage(&command_index, "--format %s: BYTES must be a number of bytes", text);
    if (!rows && strcmp(text, "fixed") == 0)
        return command_usage(&command_index, "--format fixed: write fixed=BYTES, the bytes of a row");
    wish->format = container_format_find(rows ? "fixed" : text);
    wish->row = rows ? (uint32_t)row : 0;
    return wish->format
               ? COMMAND_DONE
               : command_usage(&command_index, "--format %s: not tar, tfrecord, lines, npy or fixed=BYTES", text);
}

static int parse_options(int argc, char **argv, struct index_request *r)
{
    int status = command_options(&command_index, r, argc, argv);
    if (!status && r->format)
        status = parse_format(r->format, &r->wish);
    if (status)
        return status;
    r->wish.jobs = (int)r->jobs;
    if (argc - optind != (r->output ? 1 : 2))
        return command_usage(&command_index, r->output ? "with --output one MOUNTPOINT is needed, and no NAME"
                                                       : "one MOUNTPOINT and one NAME are needed");
    r->mountpoint = argv[optind];
    r->name = r->output ? NULL : argv[optind + 1];
    r->wish.text = r->output;
    r->wish.files.under = r->under ? client_path_under(r->under, r->mountpoint) : NULL;
    return COMMAND_DONE;
}

static int index_command(int argc, char **argv)
{
    struct index_request request = {0};
    CLEANUP_LIVE struct live live = {0};
    int status = parse_options(argc, argv, &request);
    if (status)
        return status;
    if (client_find(request.mountpoint, LIVE_UP, &live))
        return COMMAND_FAILED;
    return index_live(&request, &live);
}

#define AT(member) .place = offsetof(struct index_request, member)
static const struct command_option index_options[] = {
    {"under", 0, OPTION_TEXT, "DIR", "only files below this directory of the mount (all)", AT(under)},
    {"match", 0, OPTION_TEXT, "GLOB", "only files whose name (with a slash in GLOB: whose path) matches (all)",
     AT(wish.files.match)},
    {"format", 0, OPTION_TEXT, "F", "tar, tfrecord, lines, npy or fixed=BYTES; default: by the content of each file",
     AT(format)},
    {"skip-broken", 0, OPTION_FLAG, NULL, "leave broken containers out; default: fail", AT(wish.skip_broken)},
    {"output", 'o', OPTION_TEXT, "FILE", "write the list as text to FILE (-: stdout) instead of uploading it",
     AT(output)},
    {"jobs", 'j', OPTION_NUMBER, "N", "containers parsed concurrently (4, and 8 per other node)", AT(jobs),
     .most = CONTAINER_JOBS},
    {0},
};

const struct command command_index = {
    .name = "index",
    .arguments = "[OPTIONS] MOUNTPOINT NAME | [OPTIONS] --output FILE MOUNTPOINT",
    .summary = "make a record list of containers: tar, TFRecord, lines, arrays",
    .options = index_options,
    .run = index_command,
};
