/* fs/base/clock.h: bounds that tests make shorter. */
#include "fs/base/clock.h"
#include "tests/lib/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t bound(const char *text)
{
    setenv("TEST_BOUND", text, 1);
    return clock_bound("TEST_BOUND", 30) / SECOND;
}

static void test_bound(void)
{
    unsetenv("TEST_BOUND");
    is_uint(clock_bound("TEST_BOUND", 30), 30 * SECOND, "a bound");
    is_uint(bound("2"), 2, "a shorter one");
    is_uint(bound("0"), 0, "none at all");
    is_uint(bound(""), 30, "an empty word is no number");
    is_uint(bound("2s"), 30, "nor is one with a unit");
}

/* This program again, with the rights of root and started by another user. */
static void test_other_rights(const char *program)
{
    if (geteuid() != 0) {
        skip(1, "needs root");
        return;
    }
    setenv("TEST_BOUND", "2", 1);
    pid_t child = fork();
    if (child == 0) {
        if (setresuid(65534, 0, 0))
            _exit(99);
        execl("/proc/self/exe", program, "bound", (char *)NULL);
        _exit(98);
    }
    int status;
    waitpid(child, &status, 0);
    is_int(WEXITSTATUS(status), 30, "a program with another user's rights ignores it");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "bound") == 0)
        return (int)(clock_bound("TEST_BOUND", 30) / SECOND);
    test_bound();
    test_other_rights(argv[0]);
    return done_testing();
}
