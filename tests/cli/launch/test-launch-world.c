/* The process that joins the nodes: while it runs, when it ends by itself, and when it is told to end. Here mpirun is a
 * script that waits for a line in a FIFO. */
#include "cli/launch/launch-world.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "tests/lib/tap.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct launch_node node[] = {{.host = (char *)"one"}, {.host = (char *)"two"}};
static const struct launch_nodes nodes = {.way = WAY_HOSTS, .node = node, .count = 2};

static void make_mpirun(void)
{
    static const char script[] = "#!/bin/sh\necho \"$@\"\nread -r line <\"$TEST_FIFO\"\n";
    CLEANUP_STR struct str path = STR_INIT;
    str_addf(&path, "%s:%s", test_directory(), getenv("PATH"));
    if (file_write_atomic(AT_FDCWD, test_path("mpirun"), script, sizeof script - 1, 0700) ||
        mkfifo(test_path("fifo"), 0600) || setenv("PATH", path.data, 1) || setenv("TEST_FIFO", test_path("fifo"), 1) ||
        unsetenv("DEALFS_RSH") || unsetenv("DEALFS_MPIRUN"))
        bail_out("make mpirun");
}

/* Reads what it says, until the end of the line or of the process. False: it has ended. */
static bool hear(const struct launch_world *w, struct str *said)
{
    struct pollfd ready = {.fd = w->output, .events = POLLIN};
    char byte = '\0';
    while (byte != '\n' && poll(&ready, 1, test_patience()) == 1 && read(w->output, &byte, 1) == 1)
        str_add(said, &byte, 1);
    return byte == '\n';
}

/* The output ends shortly before the process does. */
static bool await_end(struct launch_world *w)
{
    CLEANUP_STR struct str rest = STR_INIT;
    while (hear(w, &rest))
        continue;
    while (!launch_world_ended(w))
        if (test_patience() == 1)
            return false;
        else
            clock_sleep(MILLISECOND);
    return true;
}

static void start(struct launch_world *w)
{
    CLEANUP_STR struct str why = STR_INIT, said = STR_INIT;
    is_int(launch_world_start(w, &nodes, "/mountpoint", &why), 0, "mpirun is started");
    ok(hear(w, &said) && strstr(said.data, "--host one,two ") && strstr(said.data, " join --nodes 2 /mountpoint"),
       "it joins the two nodes");
    ok(!launch_world_ended(w) && !launch_world_ended(w) && w->pid > 0, "it runs, and has not ended");
}

int main(void)
{
    struct launch_world w;
    make_mpirun();
    launch_world_init(&w);
    ok(!launch_world_ended(&w), "what was not started has not ended");
    start(&w);
    CLEANUP_CLOSE int fifo = open(test_path("fifo"), O_WRONLY | O_CLOEXEC);
    if (fifo < 0 || file_write_all(fifo, "\n", 1))
        bail_out("write to the FIFO");
    ok(await_end(&w), "it ends by itself");
    ok(w.pid == 0 && w.again > w.began, "and may be started again after a pause");
    ok(!launch_world_ended(&w), "its end is reported once");
    start(&w);
    launch_world_end(&w);
    ok(await_end(&w), "it ends when it is told to");
    start(&w);
    launch_world_end(&w);
    launch_world_fini(&w);
    ok(w.pid == 0 && w.output == -1, "at last it is waited for");
    return done_testing();
}
