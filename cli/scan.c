/* dealfs scan: writes the catalog of a mount that waits for its first world to a file. Called by the courier of the
 * node that scans for all; not in the list of commands. A cached catalog in the state directory makes it quick. */
#include "cli/base/command.h"
#include "cli/base/interrupt.h"
#include "cli/base/place.h"
#include "cli/mount/survey.h"
#include "fs/attach/config.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/base/process.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static int survey_source(const struct mount_config *c, struct str *why)
{
    CLEANUP_FREE char *path = place_join(c->state, "catalog");
    CLEANUP_CLOSE int source_fd = open(c->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct catalog *catalog = NULL;
    if (!path)
        return -ENOMEM;
    if (source_fd < 0)
        return place_error(why, "source", c->source, -errno);
    int error = survey_run(&(struct survey){.source = c->source,
                                            .path = path,
                                            .source_fd = source_fd,
                                            .scan = {.threads = c->source_threads,
                                                     .rescan = (enum rescan)c->rescan,
                                                     .kept = c->ssd_path,
                                                     .acls = c->allow_other,
                                                     .ignore_ctime = c->identity_mtime},
                                            .to = stdout},
                           &catalog, why);
    catalog_close(catalog);
    return error;
}

static int hand_out(const struct mount_config *c, const char *to, struct str *why)
{
    CLEANUP_FREE char *path = place_join(c->state, "catalog");
    CLEANUP_CLOSE int from = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    int error = !path ? -ENOMEM : from < 0 ? -errno : file_copy_atomic(from, to);
    return place_error(why, "write", to, error);
}

static int scan_command(int argc, char **argv)
{
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_CONFIG struct mount_config config = {0};
    if (argc != 3)
        return command_usage(&command_scan, "a STATE directory and a FILE are needed");
    interrupt_catch(SIGINT, SIGTERM);
    process_leave_launcher();
    struct stat st;
    if (lstat(argv[1], &st) == 0 && st.st_uid != geteuid())
        return command_fail("%s: it belongs to another user, so its configuration is not used", argv[1]);
    int error = config_read(argv[1], &config);
    if (error)
        return command_fail("read %s/config: %s", argv[1], strerror(-error));
    error = survey_source(&config, &why);
    if (!error)
        error = hand_out(&config, argv[2], &why);
    return error ? command_fail("%s", command_why(&why, error)) : COMMAND_DONE;
}

const struct command command_scan = {
    .name = "scan",
    .arguments = "STATE FILE",
    .summary = "", /* hidden */
    .run = scan_command,
};
