/* fs/base/ready.h */
#include "fs/base/ready.h"

#include "tests/lib/tap.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void interrupt(int signal)
{
    (void)signal;
}

static void test_interrupted(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN, .revents = POLLIN | POLLHUP};
    struct sigaction action = {.sa_handler = interrupt};
    sigaction(SIGALRM, &action, NULL);
    const struct itimerval soon = {.it_interval = {.tv_usec = 1000}, .it_value = {.tv_usec = 1000}}, never = {0};
    setitimer(ITIMER_REAL, &soon, NULL);
    is_int(ready_wait(&polled, 1, -1), -1, "a signal ends a wait");
    setitimer(ITIMER_REAL, &never, NULL);
    is_int(polled.revents, 0, "and no events are set");
}

/* The status and output of a process that waits for more descriptors than its limit. */
static void test_error(void)
{
    enum { MANY = 100 };
    char said[200] = "";
    int to[2], status;
    if (pipe(to))
        bail_out("make a pipe");
    pid_t child = fork();
    if (child == 0) {
        struct pollfd many[MANY];
        const struct rlimit limit = {MANY / 2, MANY / 2};
        for (int i = 0; i < MANY; i++)
            many[i] = (struct pollfd){.fd = -1};
        dup2(to[1], 2);
        setrlimit(RLIMIT_NOFILE, &limit);
        _exit(ready_wait(many, MANY, 0));
    }
    waitpid(child, &status, 0);
    is_int(status, W_EXITCODE(EXIT_FAILURE, 0), "any other error ends the process");
    ok(read(to[0], said, sizeof said - 1) > 0 && strstr(said, "wait for 100 descriptors: Invalid argument"),
       "with a message");
    close(to[0]);
    close(to[1]);
}

int main(void)
{
    int fd[2];
    if (pipe(fd))
        bail_out("make a pipe");
    struct pollfd polled = {.fd = fd[0], .events = POLLIN};
    is_int(ready_wait(&polled, 1, 0), 0, "nothing is ready");
    ok(!ready_now(fd[0], POLLIN), "now");
    test_interrupted(fd[0]);
    if (write(fd[1], "x", 1) != 1)
        bail_out("write");
    is_int(ready_wait(&polled, 1, -1), 1, "a byte is there");
    ok(ready_now(fd[0], POLLIN), "now");
    test_error();
    return done_testing();
}
