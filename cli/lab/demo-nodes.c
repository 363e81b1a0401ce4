/* The mounts of the demonstration. Several nodes are that many mounts on this machine, made by one mpirun process; it
 * ends when they are unmounted. */
#include "cli/lab/demo.h"
#include "cli/lab/lab.h"

#include "cli/base/child.h"
#include "cli/base/command.h"
#include "cli/base/interrupt.h"
#include "cli/base/place.h"
#include "cli/live/live.h"
#include "cli/mount/unmount.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/mpi-versions.h"
#include "fs/base/process.h"
#include "fs/base/ready.h"
#include "fs/wire/handover.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { READY_SECONDS = 60, END_SECONDS = 20, TICK_MS = 50, MIB = 1 << 20 };

int demo_dealfs(char *const argv[], bool whole)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGPIPE, SIG_DFL);
        if (whole)
            signal(SIGINT, SIG_IGN);
        execv(lab_dealfs, argv);
        _exit(127);
    }
    if (pid < 0)
        return -errno;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* --- a world --- */

static const char *missing_for_world(void)
{
    char path[PATH_MAX];
    if (handover_find_program("dealfs-courier", path, sizeof path))
        return "this dealfs was built without Open MPI";
    return place_in_path("mpirun", path, sizeof path) ? "mpirun is not installed" : NULL;
}

/* Only we send it signals: Ctrl-C on the terminal is for the demonstration, which then cleans up in order. */
static _Noreturn void become_mpirun(const struct demo *demo, int output)
{
    char options[2 * PATH_MAX], mountpoint[PATH_MAX];
    char nodes[16];
    snprintf(nodes, sizeof nodes, "%d", demo->nodes);
    snprintf(options, sizeof options, "state=%s/state.%%r,ram=%" PRIu64 "M", demo->directory,
             demo->bytes / 2 / MIB + 1);
    snprintf(mountpoint, sizeof mountpoint, "%s/node%%r", demo->directory);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    open_mpi_start();
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
        _exit(127);
    execlp("mpirun", "mpirun", "-n", nodes, "--oversubscribe", "--bind-to", "none", lab_dealfs, "mount", "-o", options,
           demo->source, mountpoint, (char *)NULL);
    _exit(127);
}

static int start_mpirun(struct demo *demo)
{
    fflush(stdout);
    pid_t child = child_fork(&demo->output);
    if (child == 0)
        become_mpirun(demo, demo->output);
    demo->mpirun = child > 0 ? child : 0;
    return child < 0 ? child : 0;
}

/* Shows mpirun's output line by line, until a node is `ready`. 0; else the reason: -ECANCELED, -ETIMEDOUT, -EIO. */
static int await_ready(const struct demo *demo)
{
    CLEANUP_STR struct str line = STR_INIT;
    uint64_t deadline = clock_now() + READY_SECONDS * SECOND;
    while (!interrupted) {
        struct pollfd more = {.fd = demo->output, .events = POLLIN};
        char byte;
        if (clock_now() > deadline)
            return -ETIMEDOUT;
        if (ready_wait(&more, 1, TICK_MS) <= 0)
            continue;
        if (read(demo->output, &byte, 1) != 1)
            return -EIO;
        if (byte != '\n') {
            str_add(&line, &byte, 1);
            continue;
        }
        if (line.length > 0)
            printf("  %s\n", line.data);
        fflush(stdout);
        if (line.length > 0 && strcmp(line.data, "ready") == 0)
            return 0;
        str_clear(&line);
    }
    return -ECANCELED;
}

static bool mpirun_has_ended(struct demo *demo, unsigned seconds)
{
    uint64_t deadline = clock_now() + seconds * SECOND;
    while (demo->mpirun && waitpid(demo->mpirun, NULL, WNOHANG) == 0) {
        char text[4096];
        struct pollfd more = {.fd = demo->output, .events = POLLIN};
        if (clock_now() > deadline)
            return false;
        if (ready_wait(&more, 1, TICK_MS) > 0 && read(demo->output, text, sizeof text) <= 0)
            clock_sleep(TICK_MS * MILLISECOND);
    }
    demo->mpirun = 0;
    return true;
}

static void end_mpirun(struct demo *demo)
{
    if (demo->mpirun && !mpirun_has_ended(demo, END_SECONDS)) {
        kill(demo->mpirun, SIGTERM);
        if (!mpirun_has_ended(demo, END_SECONDS)) {
            kill(demo->mpirun, SIGKILL);
            mpirun_has_ended(demo, END_SECONDS);
        }
    }
    if (demo->output >= 0)
        close(demo->output);
    demo->output = -1;
}

static int open_roots(struct demo *demo)
{
    for (int i = 0; i < demo->nodes; i++) {
        demo->root[i] = open(demo->mountpoint[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (demo->root[i] < 0)
            return command_fail("open %s: %s", demo->mountpoint[i], strerror(errno));
    }
    return COMMAND_DONE;
}

static int make_mountpoints(struct demo *demo)
{
    for (int i = 0; i < demo->nodes; i++) {
        snprintf(demo->mountpoint[i], PATH_MAX, "%s/node%d", demo->directory, i);
        snprintf(demo->control[i], PATH_MAX, "%s/node%d/.dealfs", demo->directory, i);
        if (mkdir(demo->mountpoint[i], 0755) < 0 && errno != EEXIST)
            return command_fail("make %s: %s", demo->mountpoint[i], strerror(errno));
    }
    return COMMAND_DONE;
}

/* --- one node --- */

static int mount_one(struct demo *demo)
{
    char options[PATH_MAX + 16];
    char *const argv[] = {"dealfs", "mount", "-o", options, demo->source, demo->mountpoint[0], NULL};
    snprintf(options, sizeof options, "state=%s/state", demo->directory);
    printf("  dealfs mount %s/pictures \\\n    %s/node0\n\n", demo->pasted.data, demo->pasted.data);
    int status = demo_dealfs(argv, false);
    if (status != 0)
        return command_fail("the demonstration ends here: `dealfs mount` ended with status %d; `dealfs doctor` may "
                            "know why",
                            status);
    return open_roots(demo);
}

/* --- both --- */

/* Is there a process that mounts there, or that serves the mount? */
static bool is_used(const struct demo *demo, int node)
{
    char state[PATH_MAX];
    if (demo->nodes > 1)
        snprintf(state, sizeof state, "%s/state.%d", demo->directory, node);
    else
        snprintf(state, sizeof state, "%s/state", demo->directory);
    return live_state_is_free(state) != 0;
}

static bool is_mounted(const struct demo *demo, int node)
{
    CLEANUP_STR struct str why = STR_INIT;
    CLEANUP_LIVE struct live live = {0};
    return live_find(demo->mountpoint[node], &live, &why) != -ENOENT;
}

/* mpirun may end before the commands that it has started. One that is just mounting makes the mount busy, until it has
 * ended. At the deadline, what is busy is unmounted lazily. False: it is still mounted. */
static bool take_away(const struct demo *demo, int node, uint64_t deadline)
{
    for (;; clock_sleep(TICK_MS * MILLISECOND)) {
        CLEANUP_STR struct str why = STR_INIT;
        CLEANUP_LIVE struct live live = {0};
        bool late = clock_now() > deadline;
        int error = live_find(demo->mountpoint[node], &live, &why);
        if (error == -ENOENT && (late || !is_used(demo, node)))
            return true;
        if (!error)
            error = unmount_live(&live, late, &why);
        if (!late)
            continue;
        if (error)
            command_note(stderr, "%s", command_why(&why, error));
        return !error || !is_mounted(demo, node); /* if only its processes have not ended */
    }
}

static bool take_away_each(const struct demo *demo)
{
    uint64_t deadline = clock_now() + END_SECONDS * SECOND;
    bool all = true;
    for (int i = 0; i < demo->nodes; i++)
        if (demo->mountpoint[i][0])
            all &= take_away(demo, i, deadline);
    return all;
}

static int mount_world(struct demo *demo)
{
    printf("  %smpirun -n %d --oversubscribe --bind-to none \\\n    dealfs mount -o ram=%" PRIu64
           "M,state=%s/state.%%r \\\n"
           "    %s/pictures %s/node%%r &\n\n",
           geteuid() == 0 ? "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n  " : "", demo->nodes,
           demo->bytes / 2 / MIB + 1, demo->pasted.data, demo->pasted.data, demo->pasted.data);
    int error = start_mpirun(demo);
    if (!error)
        error = await_ready(demo);
    if (!error)
        return open_roots(demo);
    if (error == -ECANCELED)
        return command_fail("interrupted");
    const char *why = error == -EIO ? "the world did not come up" : strerror(-error);
    if (demo->mpirun)
        kill(demo->mpirun, SIGTERM);
    end_mpirun(demo);
    if (!take_away_each(demo) || interrupted)
        return command_fail("the demonstration ends here: %s", interrupted ? "interrupted" : why);
    printf("\nGoing on with one node: %s\n\n", why);
    demo->nodes = 1;
    return mount_one(demo);
}

int demo_mount(struct demo *demo)
{
    const char *why = missing_for_world();
    process_leave_launcher();
    demo->nodes = why ? 1 : DEMO_NODES;
    int status = make_mountpoints(demo);
    if (status != COMMAND_DONE)
        return status;
    if (why)
        printf("One node only, for %s.\n\n", why);
    return why ? mount_one(demo) : mount_world(demo);
}

/* mpirun ends by itself when the mounts of its world are gone. */
int demo_unmount(struct demo *demo)
{
    char *const world[] = {"dealfs", "umount", "--world", demo->mountpoint[0], NULL};
    char *const one[] = {"dealfs", "umount", demo->mountpoint[0], NULL};
    for (int i = 0; i < DEMO_NODES; i++) {
        if (demo->root[i] >= 0)
            close(demo->root[i]);
    }
    if (demo->root[0] >= 0) {
        printf("\n  dealfs umount %s%s/node0\n\n", demo->nodes > 1 ? "--world " : "", demo->pasted.data);
        demo_dealfs(demo->nodes > 1 ? world : one, true);
    } else if (demo->mpirun) {
        kill(demo->mpirun, SIGTERM);
    }
    end_mpirun(demo);
    return take_away_each(demo) ? COMMAND_DONE : COMMAND_FAILED;
}
