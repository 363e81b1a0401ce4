/* fs/attach/attach.h: a connection is ended by descriptor, so never one that got its number later. */
#include "fs/attach/attach.h"
#include "fs/base/ready.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { TRIES = 64 };

static struct attach_mount mount_one(void)
{
    const struct attach_options options = {.subtype = "dealfs", .source = "test", .uid = geteuid(), .gid = getegid()};
    struct attach_mount made;
    struct str why = STR_INIT;
    if (attach_mount("/", &options, &made, &why))
        plan_skip_all("no FUSE mount can be made: %s", why.data ? why.data : "");
    str_fini(&why);
    return made;
}

static void mount_end(struct attach_mount *m)
{
    close(m->root);
    close(m->device);
}

static bool has_ended(const struct attach_mount *m)
{
    return ready_now(m->device, 0);
}

/* The kernel gives the lowest free number. Other programs mount as well, so it may be a later mount that gets it. */
static int mount_until(unsigned minor, struct attach_mount *mounts)
{
    int n = 0;
    do
        mounts[n] = mount_one();
    while (mounts[n++].minor != minor && n < TRIES);
    return n;
}

int main(void)
{
    static struct attach_mount mounts[TRIES];
    if (!attach_privileged())
        plan_skip_all("this process may not mount");
    struct attach_mount first = mount_one();
    int connection = attach_connection(first.minor);
    if (connection == -ENOENT || connection == -EPERM)
        plan_skip_all("the connections cannot be seen: %s", strerror(-connection));
    ok(connection >= 0 && !has_ended(&first), "a connection is found, and not ended by that");
    mount_end(&first);
    int n = mount_until(first.minor, mounts);
    struct attach_mount *next = &mounts[n - 1];
    if (next->minor == first.minor) {
        attach_abort(connection);
        ok(!has_ended(next), "a later mount with its number is not ended");
    } else {
        skip(1, "no later mount got its number");
    }
    close(connection);
    connection = attach_connection(next->minor);
    is_int(attach_abort(connection), 0, "one is ended by its own descriptor");
    ok(has_ended(next), "which its device shows");
    close(connection);
    for (int i = 0; i < n; i++)
        mount_end(&mounts[i]);
    ok(attach_connection(1u << 20) < 0, "without a mount there is no connection");
    return done_testing();
}
