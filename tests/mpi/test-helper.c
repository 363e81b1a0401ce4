/* The helper, with this program itself as the command that it executes: what it passes on, and what it does when the
 * courier, which its launcher has ended, is gone while a command mounts. */
#include "mpi/helper.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "mpi/signals.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char self[] = "/proc/self/exe";

void signals_obey(void)
{
}

/* --- the commands --- */

static int fail_to_mount(void)
{
    fputs("it begins\nit fails\n", stderr);
    return 3;
}

static int look_for_terminal(void)
{
    return isatty(0) || isatty(1) || isatty(2) ? 1 : 0;
}

static int said_to = -1;

static void note_term(int signal)
{
    (void)signal;
    file_write_all(said_to, "t", 1);
}

/* Says through a FIFO that it has begun, and that it got SIGTERM. It ends when nobody reads the FIFO. */
static int mount_forever(const char *fifo)
{
    struct sigaction term = {.sa_handler = note_term};
    said_to = open(fifo, O_WRONLY | O_CLOEXEC);
    sigaction(SIGTERM, &term, NULL);
    if (said_to < 0 || file_write_all(said_to, "b", 1))
        return 2;
    struct pollfd reader = {.fd = said_to};
    while (poll(&reader, 1, -1) < 0 && errno == EINTR)
        continue;
    return 1;
}

/* --- the tests --- */

static void start(struct courier_helper *h, char **command)
{
    const struct arguments arguments = {.lock = -1, .mounter = -1, .command = command};
    if (helper_start(h, &arguments))
        bail_out("start the helper");
}

static void test_status(void)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct courier_helper h;
    start(&h, (char *[]){self, (char *)"fail", NULL});
    is_int(helper_mount(&h, -1, -1, &why), -EIO, "a command that fails");
    is_str(why.data, "it fails", "its last line is the reason");
    ok(!h.mounted, "nothing is mounted");
    helper_end(&h);
    start(&h, (char *[]){self, (char *)"succeed", NULL});
    is_int(helper_mount(&h, -1, -1, &why), 0, "a command that succeeds");
    ok(h.mounted, "is a mount");
    h.mounted = false;
    helper_end(&h);
}

/* The command runs as another user than the courier may, who could type into the courier's terminal. */
static void test_terminal(void)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct courier_helper h;
    int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), before = fcntl(1, F_DUPFD_CLOEXEC, 3);
    char *name = terminal >= 0 && !grantpt(terminal) && !unlockpt(terminal) ? ptsname(terminal) : NULL;
    int end = name ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
    if (end < 0 || before < 0 || fflush(stdout) || dup2(end, 1) < 0)
        bail_out("make a terminal");
    start(&h, (char *[]){self, (char *)"terminal", NULL});
    dup2(before, 1);
    is_int(helper_mount(&h, -1, -1, &why), 0, "a command does not get the terminal of the courier");
    h.mounted = false;
    helper_end(&h);
    close(end);
    close(before);
    close(terminal);
}

/* The next byte from the FIFO; 0: none before the deadline. */
static char hear(int fifo)
{
    struct pollfd ready = {.fd = fifo, .events = POLLIN};
    char byte = 0;
    return poll(&ready, 1, test_patience()) == 1 && read(fifo, &byte, 1) == 1 ? byte : 0;
}

static bool sleeps(pid_t process)
{
    CLEANUP_STR struct str stat = STR_INIT;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    const char *name_end = file_read(AT_FDCWD, path, 4096, &stat) ? NULL : strrchr(stat.data, ')');
    return name_end && strncmp(name_end, ") S", 3) == 0;
}

static void test_end_of_courier(void)
{
    CLEANUP_STR struct str why = STR_INIT;
    struct courier_helper h;
    char path[4096];
    snprintf(path, sizeof path, "%s", test_path("fifo"));
    int fifo = mkfifo(path, 0600) ? -1 : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int courier = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fifo < 0 || courier < 0)
        bail_out("make a FIFO");
    start(&h, (char *[]){self, (char *)"forever", path, NULL});
    is_int(helper_begin_mount(&h, -1, -1, courier, &why), 0, "a mount begins");
    is_int(hear(fifo), 'b', "the command runs");
    ok(!helper_has_ended(&h), "and has not ended");
    close(h.socket);
    h.socket = -1;
    is_int(hear(fifo), 't', "the courier is gone: the command gets SIGTERM");
    while (!sleeps(h.pid) && test_patience() > 1)
        clock_sleep(MILLISECOND);
    ok(sleeps(h.pid), "the helper sleeps until the command has undone the mount");
    close(fifo);
    helper_end(&h);
    close(courier);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "fail") == 0)
        return fail_to_mount();
    if (argc > 1 && strcmp(argv[1], "succeed") == 0)
        return 0;
    if (argc > 1 && strcmp(argv[1], "terminal") == 0)
        return look_for_terminal();
    if (argc > 1 && strcmp(argv[1], "forever") == 0)
        return mount_forever(argv[argc - 1]);
    test_status();
    test_terminal();
    test_end_of_courier();
    return done_testing();
}
