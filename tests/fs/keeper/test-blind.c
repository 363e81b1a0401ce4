/* A keeper that has no descriptor left cannot look: then no server is dead, and no mount is gone. */
#include "fs/keeper/servers.h"
#include "fs/keeper/takedown.h"

#include "fs/base/log.h"
#include "fs/base/process.h"
#include "tests/lib/tap.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct handover *h;
static struct mount_config config;

static void limit_files(pid_t process, rlim_t most)
{
    struct rlimit limit;
    if (prlimit(process, RLIMIT_NOFILE, NULL, &limit))
        bail_out("prlimit: %s", strerror(errno));
    limit.rlim_cur = most ? most : limit.rlim_max;
    if (prlimit(process, RLIMIT_NOFILE, &limit, NULL))
        bail_out("prlimit: %s", strerror(errno));
}

static int status_of(pid_t child)
{
    int status;
    if (child < 0 || process_await_child(child, test_patience() / 1000 + 1, &status) || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

/* The child of takedown_look closes the keeper's descriptors, so it can open those below the limit. */
static void test_mount(void)
{
    config.data_minor = 0xfffff; /* of no mount */
    is_int(status_of(takedown_look(&config)), 1, "a mount that no process has is gone");
    limit_files(0, 4);
    is_int(status_of(takedown_look(&config)), 0, "not if other processes cannot be examined");
    limit_files(0, 0);
}

/* This process is the server of a keeper that died. The child looks until it knows; 0: it has adopted the server. */
static pid_t adopt_in_child(int log)
{
    pid_t server = getpid(), child = fork();
    if (child != 0)
        return child;
    struct servers servers = {.config = &config, .handover = h, .server = {0, -1, -1}};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    limit_files(0, 1);
    log_open("test", log, false);
    atomic_store(&h->server, (uint32_t)server);
    int adopted;
    while ((adopted = servers_adopt(&servers)) < 0)
        sched_yield();
    _exit(adopted == 1 ? 0 : 1);
}

static void test_server(void)
{
    int ends[2];
    char line[256];
    config.owner_uid = getuid();
    if (pipe(ends))
        bail_out("pipe: %s", strerror(errno));
    pid_t child = adopt_in_child(ends[1]);
    close(ends[1]);
    ok(child > 0 && read(ends[0], line, sizeof line) > 0, "a server that cannot be watched is reported");
    limit_files(child, 0);
    is_int(status_of(child), 0, "and adopted when it can be watched");
    close(ends[0]);
}

int main(void)
{
    if (handover_reserve() || handover_open(true, &h))
        bail_out("make the shared memory");
    test_mount();
    test_server();
    handover_close(h);
    return done_testing();
}
