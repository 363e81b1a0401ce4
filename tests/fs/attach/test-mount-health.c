/* Which errors show that a mount is dead, and what a mount table that cannot be read shows. */
#include "fs/attach/mount-health.h"

#include "fs/attach/pair.h"
#include "fs/base/process.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

enum { LAST_ERROR = 133 };

static enum mount_health expected(int error)
{
    return error == 0                                   ? MOUNT_ANSWERS
           : error == ENOTCONN || error == ECONNABORTED ? MOUNT_DEAD
           : error == ETIMEDOUT                         ? MOUNT_HANGS
           : error == EACCES || error == EPERM          ? MOUNT_DENIED
                                                        : MOUNT_UNKNOWN;
}

static void test_errors(void)
{
    int wrong = -1;
    for (int error = 0; error <= LAST_ERROR; error++)
        if (mount_health_of(-error) != expected(error))
            wrong = error;
    is_int(wrong, -1, "only ENOTCONN and ECONNABORTED show that a mount is dead");
}

static void test_look(void)
{
    ok(process_look_error(-ESRCH) == 0 && process_look_error(-ENOENT) == 0, "a process that has ended");
    is_int(process_look_error(-EACCES), 0, "a process of another user");
    ok(process_look_error(-EMFILE) == -EMFILE && process_look_error(-ENOMEM) == -ENOMEM, "a look that failed");
}

/* The last test: no file can be opened afterwards. */
static void test_table(void)
{
    struct pair pair = {.mountpoint = "/proc", .uid = 12345};
    is_int(pair_adopt(&pair), -ENOENT, "another mount is not taken over");
    if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0}))
        bail_out("setrlimit: %s", strerror(errno));
    is_int(pair_adopt(&pair), -EMFILE, "a mount table that cannot be read does not show that nothing is mounted");
    is_int(pair_take(&(struct pair){.mountpoint = "/proc", .source = "none", .data_minor = 1, .nested = true}, false),
           -EMFILE, "and nothing is reported as removed");
}

int main(void)
{
    test_errors();
    test_look();
    test_table();
    return done_testing();
}
