/* A process that has no descriptor left cannot look: then nothing is reported as unused, free, dead or gone. */
#include "cli/launch/remains.h"
#include "cli/live/keepers.h"
#include "cli/live/live.h"
#include "cli/live/users.h"
#include "cli/mount/leavings.h"
#include "fs/base/cleanup.h"
#include "fs/base/file.h"
#include "fs/wire/units.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Only this many more files can be opened. */
static void allow_files(unsigned count)
{
    int lowest = dup(0);
    struct rlimit limit;
    close(lowest);
    if (lowest < 0 || getrlimit(RLIMIT_NOFILE, &limit))
        bail_out("getrlimit: %s", strerror(errno));
    limit.rlim_cur = (rlim_t)lowest + count;
    if (setrlimit(RLIMIT_NOFILE, &limit))
        bail_out("setrlimit: %s", strerror(errno));
}

static int take_none(void *user, const struct keeper_seen *keeper)
{
    (void)user, (void)keeper;
    return 0;
}

static void test_with(unsigned files)
{
    CLEANUP_STR struct str names = STR_INIT, why = STR_INIT;
    CLEANUP_LIVE struct live live = {0};
    allow_files(files);
    is_int(users_of_mount("/no/such/place", &names), -EMFILE, "%u files: users of a mount", files);
    is_int(users_of_device(0, 1, "/no/source", &names), -EMFILE, "users of a device");
    is_int(keepers_each(take_none, NULL), -EMFILE, "keepers");
    is_int(remains_signal(&(struct remains){0}, 0), -EMFILE, "processes of a job");
    is_int(live_find("/no/such/place", &live, &why), -EMFILE, "a mount");
    if (files == 0)
        is_int(live_state_is_free(test_directory()), -EMFILE, "a state");
}

static void test_all_seen(void)
{
    CLEANUP_STR struct str names = STR_INIT, why = STR_INIT;
    CLEANUP_LIVE struct live live = {0};
    is_int(users_of_mount("/no/such/place", &names), 0, "nothing uses a place that does not exist");
    is_int(live_find("/no/such/place", &live, &why), -ENOENT, "and nothing is mounted there");
    is_int(live_state_is_free(test_directory()), 0, "a folder without a lock is free");
}

/* A lock of RocksDB that cannot be opened, here because it is a folder. */
static void test_lock(void)
{
    struct clean clean = {.yes = true};
    CLEANUP_STR struct str said = STR_INIT;
    const char *lock = test_path("ssd/dealfs-someone-0123456789abcdef.0/" ROCKS_DATABASE "/LOCK");
    if (dir_make(lock, 0700))
        bail_out("make %s", lock);
    clean.said = &said;
    is_int(leavings_shards(&clean, test_path("ssd")), 0, "shards are cleaned");
    ok(clean.removed == 0 && access(lock, F_OK) == 0, "one that may be in use stays");
    rmdir(lock);
    is_int(leavings_shards(&clean, test_path("ssd")), 0, "again");
    is_int(clean.removed, 1, "one that nobody has locked is removed");
}

int main(void)
{
    test_all_seen();
    test_lock();
    test_with(1);
    test_with(0);
    return done_testing();
}
