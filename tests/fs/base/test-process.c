/* fs/base/process.h: a child is awaited; what a process of root's leaves behind when it becomes another user. */
#include "fs/base/process.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { USER_ID = 65534, FOUND = 10, ENDED = 7 };

/* Ends when its parent sleeps. */
static _Noreturn void end_later(pid_t parent)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)parent);
    while (state != 'S') {
        FILE *f = fopen(path, "re");
        if (!f || fscanf(f, "%*d %*s %c", &state) != 1)
            _exit(1);
        fclose(f);
    }
    _exit(ENDED);
}

static void test_await(bool watched)
{
    struct rlimit before, one;
    const char *how = watched ? "a child" : "without a descriptor to watch it, a child";
    pid_t parent = getpid(), child = fork();
    int status = 0;
    if (child == 0)
        end_later(parent);
    if (child < 0 || getrlimit(RLIMIT_NOFILE, &before))
        bail_out("start a child: %s", strerror(errno));
    one = (struct rlimit){1, before.rlim_max};
    if (!watched && setrlimit(RLIMIT_NOFILE, &one))
        bail_out("limit descriptors: %s", strerror(errno));
    int error = process_await_child(child, test_patience() / 1000, &status);
    setrlimit(RLIMIT_NOFILE, &before);
    is_int(error, 0, "%s is awaited", how);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == ENDED, "and it ends by itself");
}

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

static void test_become(void)
{
    int status;
    if (geteuid() != 0) {
        skip(2, "only root can become another user");
        return;
    }
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0) {
        skip(2, "no keyrings: %s", strerror(errno));
        return;
    }
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
}

int main(void)
{
    test_await(true);
    test_await(false);
    test_become();
    return done_testing();
}
