/* dealfs scan: write the catalog of a mount that waits for its first world to a file. Called by the courier of the node that is
 * to do it for all; not in the list of commands. What the state directory has kept makes it quick. */
#include "cli/command.h"
#include "cli/given.h"
#include "cli/launcher.h"
#include "cli/owner.h"
#include "cli/place.h"
#include "cli/survey.h"
#include "fs/base/cleanup.h"
#include "fs/mount/config.h"

#include <fcntl.h>
#include <string.h>

static volatile sig_atomic_t stopped_by;

static void on_signal(int signal)
{
    stopped_by = signal;
}

static int survey(const struct mount_config *c, struct str *why)
{
    CLEANUP_FREE char *path = place_join(c->state, "catalog");
    CLEANUP_CLOSE int source_fd = open(c->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct catalog *catalog = NULL;

    if (!path)
        return -ENOMEM;
    if (source_fd < 0)
        return place_fail(why, "source", c->source, strerror(errno), -errno);
    int error = survey_run(&(struct survey){.source = c->source,
                                            .path = path,
                                            .source_fd = source_fd,
                                            .rescan = (enum rescan)c->rescan,
                                            .stop = &stopped_by,
                                            .to = stdout},
                           &catalog, why);
    catalog_close(catalog);
    return error;
}

static int hand_out(const struct mount_config *c, const char *to, struct str *why)
{
    CLEANUP_FREE char *path = place_join(c->state, "catalog");
    CLEANUP_CLOSE int from = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    int error = !path ? -ENOMEM : from < 0 ? -errno : given_copy(from, to);
    return error ? place_fail(why, "write", to, strerror(-error), error) : 0;
}

static int survey_as_owner(const struct mount_config *c, const char *to, struct str *why)
{
    char uid[16];
    struct owner owner = {0};

    snprintf(uid, sizeof uid, "%u", (unsigned)c->owner_uid);
    int error = owner_find(geteuid() == 0 ? uid : NULL, &owner, why);
    if (!error)
        error = owner_assume(&owner, why);
    if (!error) {
        error = survey(c, why);
        owner_leave(&owner);
    }
    if (!error)
        error = hand_out(c, to, why);
    owner_fini(&owner);
    return error;
}

static int run(int argc, char **argv)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct mount_config config;

    if (argc != 3)
        return command_usage(&command_scan, "a STATE directory and a FILE are needed");
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    launcher_leave();
    int error = config_read(argv[1], &config);
    if (error)
        return command_fail("read %s/config: %s", argv[1], strerror(-error));
    error = survey_as_owner(&config, argv[2], &why);
    config_fini(&config);
    if (error && why.length == 0)
        str_adds(&why, strerror(-error));
    return error ? command_fail("%s", why.failed ? "out of memory" : why.data) : COMMAND_DONE;
}

const struct command command_scan = {
    .name = "scan",
    .arguments = "STATE FILE",
    .summary = "", /* hidden */
    .help = "",
    .run = run,
};
