/* Implements launch-world.h. */
#include "cli/launch/launch-world.h"

#include "cli/base/child.h"
#include "cli/base/place.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/mpi-versions.h"
#include "fs/base/process.h"
#include "fs/wire/handover.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { ARGUMENT_MOST = 128 << 10 }; /* the kernel's limit of one argument, with its NUL */
enum { WORDS = 64, PAUSE_FIRST = 1, PAUSE_LAST = 32, LIVED_SECONDS = 60, SILENCE_SECONDS = 330, END_MS = 5000 };

void launch_world_init(struct launch_world *w)
{
    *w = (struct launch_world){.output = -1, .pause = PAUSE_FIRST};
}

static void list_hosts(const struct launch_nodes *n, struct str *list)
{
    for (unsigned i = 0; i < n->count; i++)
        str_addf(list, "%s%s", i ? "," : "", n->node[i].host);
}

/* For each agent its input, output and errors; and what is open before and meanwhile. */
static int raise_descriptors(unsigned nodes, struct str *why)
{
    enum { PER_NODE = 3, OTHERS = 64 };
    struct rlimit limit;
    rlim_t least = (rlim_t)PER_NODE * nodes + OTHERS;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= least)
        return 0;
    const struct rlimit raised = {least, least > limit.rlim_max ? least : limit.rlim_max};
    return setrlimit(RLIMIT_NOFILE, &raised) == 0
               ? 0
               : str_fail(why, -EMFILE, "%u nodes need %ju open files, and the limit (ulimit -Hn) is %ju", nodes,
                          (uintmax_t)least, (uintmax_t)limit.rlim_max);
}

int launch_world_check(const struct launch_nodes *n, struct str *why)
{
    const char *starter = n->way == WAY_SLURM ? "srun" : "mpirun";
    char path[PATH_MAX];
    if (n->count < 2)
        return 0;
    if (handover_find_program("dealfs-courier", path, sizeof path))
        return str_fail(why, -ENOENT,
                        "find dealfs-courier: this dealfs was built without Open MPI, and can mount on one node only");
    if (raise_descriptors(n->count, why))
        return -EMFILE;
    CLEANUP_STR struct str hosts = STR_INIT;
    list_hosts(n, &hosts);
    if (hosts.length + sizeof "--nodelist=" > ARGUMENT_MOST)
        return str_fail(why, -E2BIG, "the names of all %u nodes have %zu bytes: %s takes up to %u", n->count,
                        hosts.length, starter, ARGUMENT_MOST);
    return place_in_path(starter, path, sizeof path)
               ? place_fail(why, "find", starter, "it is not in $PATH, and is needed to join the nodes", -ENOENT)
               : 0;
}

/* --- the command line --- */

static size_t add_all(char *words[], size_t n, const char *const more[])
{
    for (; *more; more++)
        words[n++] = (char *)*more;
    return n;
}

static size_t add_mpirun(char *words[], char *more, char *hosts)
{
    size_t n = add_all(words, 0, (const char *const[]){"mpirun", NULL});
    n = launch_split(more, words, n, WORDS / 2);
    return add_all(words, n,
                   (const char *const[]){"--host", hosts, "--map-by", "ppr:1:node", "--bind-to", "none", NULL});
}

static size_t add_srun(char *words[], char *nodes, char *tasks, char *list)
{
    return add_all(words, 0,
                   (const char *const[]){"srun", "--overlap", "--mpi=pmix", nodes, tasks, "--ntasks-per-node=1", list,
                                         "--cpu-bind=none", "--kill-on-bad-exit=1", "--quiet", "--job-name=dealfs-join",
                                         NULL});
}

static void begin_starter(pid_t parent, int to)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    process_reset_signals();
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || null < 0 || dup2(null, 0) < 0 || dup2(to, 1) < 0 || dup2(to, 2) < 0)
        _exit(127);
    open_mpi_start();
    if (getenv("DEALFS_RSH"))
        open_mpi_start_by(launch_rsh());
}

static _Noreturn void become_join(const struct launch_nodes *n, const char *mountpoint, pid_t parent, int to)
{
    char program[PATH_MAX], more[1024], nodes[32], tasks[32], count_text[16], *words[2 * WORDS];
    CLEANUP_STR struct str hosts = STR_INIT, list = STR_INIT;
    const char *given = getenv("DEALFS_MPIRUN");
    begin_starter(parent, to);
    list_hosts(n, &hosts);
    child_self(program);
    snprintf(more, sizeof more, "%s", given ? given : "");
    snprintf(nodes, sizeof nodes, "--nodes=%u", n->count);
    snprintf(tasks, sizeof tasks, "--ntasks=%u", n->count);
    str_addf(&list, "--nodelist=%s", hosts.data);
    size_t count = n->way == WAY_SLURM ? add_srun(words, nodes, tasks, list.data) : add_mpirun(words, more, hosts.data);
    snprintf(count_text, sizeof count_text, "%u", n->count);
    count = add_all(words, count, (const char *const[]){program, "join", "--nodes", count_text, mountpoint, NULL});
    words[count] = NULL;
    execvp(words[0], words);
    _exit(127);
}

/* --- the process --- */

int launch_world_start(struct launch_world *w, const struct launch_nodes *n, const char *mountpoint, struct str *why)
{
    int output;
    fflush(NULL);
    pid_t parent = getpid(), child = child_fork(&output);
    if (child == 0)
        become_join(n, mountpoint, parent, output);
    if (child < 0)
        return place_error(why, "join", mountpoint, child);
    if (w->output >= 0)
        close(w->output);
    w->output = output;
    w->pid = child;
    w->began = w->heard = clock_now();
    return 0;
}

bool launch_world_is_silent(const struct launch_world *w)
{
    return w->pid && clock_now() > w->heard + clock_bound("DEALFS_LAUNCH_SILENCE", SILENCE_SECONDS);
}

/* If it lived for a while, the next start comes soon. */
bool launch_world_ended(struct launch_world *w)
{
    if (!w->pid || waitpid(w->pid, NULL, WNOHANG) != w->pid)
        return false;
    w->pid = 0;
    uint64_t now = clock_now();
    if (now - w->began > LIVED_SECONDS * SECOND)
        w->pause = PAUSE_FIRST;
    w->again = now + w->pause * SECOND;
    if (w->pause < PAUSE_LAST)
        w->pause *= 2;
    return true;
}

void launch_world_end(struct launch_world *w)
{
    w->ending = true;
    if (w->pid)
        kill(w->pid, SIGTERM);
}

void launch_world_fini(struct launch_world *w)
{
    child_end(w->pid, clock_now() + END_MS * MILLISECOND);
    w->pid = 0;
    if (w->output >= 0)
        close(w->output);
    w->output = -1;
}
