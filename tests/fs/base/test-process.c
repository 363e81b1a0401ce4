/* fs/base/process.h: what a process of root's leaves behind when it becomes another user. */
#include "fs/base/process.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <linux/keyctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { USER_ID = 65534, FOUND = 10 };

static long find_key(void)
{
    return syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_SESSION_KEYRING, "user", "dealfs-test", 0);
}

/* Runs in a child that has become the user. */
static int look_around(void)
{
    const char *home = getenv("HOME");
    if (process_leave_environment(USER_ID) || process_become(USER_ID, USER_ID))
        return 1;
    if (find_key() >= 0)
        return FOUND;
    if (getenv("SECRET") || getenv("PATHS") || !getenv("PATH") || !getenv("DEALFS_DEBUG"))
        return 2;
    return getuid() == USER_ID && home && strcmp(home, getenv("HOME")) != 0 ? 0 : 3;
}

int main(void)
{
    int status;
    if (geteuid() != 0)
        plan_skip_all("only root can become another user");
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0)
        plan_skip_all("no keyrings: %s", strerror(errno));
    if (syscall(SYS_add_key, "user", "dealfs-test", "secret", 6, KEY_SPEC_SESSION_KEYRING) < 0 || find_key() < 0)
        bail_out("add a key: %s", strerror(errno));
    setenv("SECRET", "x", 1);
    setenv("PATHS", "x", 1);
    setenv("DEALFS_DEBUG", "x", 1);
    setenv("HOME", "/root/of/root", 1);
    pid_t child = fork();
    if (child == 0)
        _exit(look_around());
    if (waitpid(child, &status, 0) != child)
        bail_out("wait: %s", strerror(errno));
    is_int(status, 0, "it has neither root's keys nor root's variables");
    ok(find_key() >= 0, "root keeps them");
    return done_testing();
}
