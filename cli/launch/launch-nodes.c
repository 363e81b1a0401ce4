/* Implements launch-nodes.h. */
#include "cli/launch/launch-nodes.h"

#include "cli/base/child.h"
#include "cli/base/place.h"
#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/file.h"
#include "fs/base/process.h"
#include "fs/wire/node.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

enum { HOSTFILE_MOST = 1 << 20, WORDS = 32, END_MS = 5000 };

const char *launch_rsh(void)
{
    const char *rsh = getenv("DEALFS_RSH");
    return rsh && *rsh ? rsh : "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10";
}

size_t launch_split(char *text, char *words[], size_t n, size_t most)
{
    for (char *word = strtok(text, " "); word && n < most; word = strtok(NULL, " "))
        words[n++] = word;
    words[n] = NULL;
    return n;
}

/* --- the list of nodes --- */

static int add_node(struct launch_nodes *n, const char *host, size_t length, struct str *why)
{
    if (*host == '-') /* ssh would take it for an option */
        return place_fail(why, "host", host, "its name must not begin with -", -EINVAL);
    for (unsigned i = 0; i < n->count; i++)
        if (strlen(n->node[i].host) == length && strncmp(n->node[i].host, host, length) == 0)
            return place_fail(why, "host", n->node[i].host, "is named twice; one agent runs per node", -EINVAL);
    struct launch_node *grown = realloc(n->node, (n->count + 1) * sizeof *grown);
    char *name = grown ? strndup(host, length) : NULL;
    if (grown)
        n->node = grown;
    if (!name || n->count >= NODES_MOST) {
        free(name);
        return name ? -E2BIG : -ENOMEM;
    }
    n->node[n->count] = (struct launch_node){.host = name, .errors = -1, .status = -1};
    channel_init(&n->node[n->count++].channel, -1, -1);
    return 0;
}

/* Names are separated by `separators`. With `lines`, the rest of a line after its name is ignored. */
static int add_list(struct launch_nodes *n, const char *list, bool lines, struct str *why)
{
    int error = 0;
    while (*list && !error) {
        size_t length = strcspn(list, lines ? " \t\r\n#" : ",");
        if (length)
            error = add_node(n, list, length, why);
        list += length;
        list += lines ? strcspn(list, "\n") : 0;
        list += *list != '\0';
    }
    return error;
}

static int add_slurm(struct launch_nodes *n, struct str *why)
{
    CLEANUP_STR struct str names = STR_INIT;
    FILE *p = popen("scontrol show hostnames \"$SLURM_JOB_NODELIST\"", "re");
    int error = p ? file_read_fd(fileno(p), HOSTFILE_MOST, &names) : -errno;
    if (p && pclose(p) != 0)
        error = -EIO;
    if (error || !names.length) {
        str_adds(why, "scontrol show hostnames: cannot list the nodes of this Slurm job");
        return error ? error : -EIO;
    }
    return add_list(n, names.data, true, why);
}

int launch_nodes_find(struct launch_nodes *n, const char *hosts, const char *hostfile, struct str *why)
{
    CLEANUP_STR struct str lines = STR_INIT;
    int error = 0;
    *n = (struct launch_nodes){.way = WAY_HOSTS};
    if (hostfile) {
        error = file_read(AT_FDCWD, hostfile, HOSTFILE_MOST, &lines);
        if (error)
            return place_error(why, "hostfile", hostfile, error);
        error = add_list(n, lines.data, true, why);
    } else if (hosts) {
        error = add_list(n, hosts, false, why);
    } else if (getenv("SLURM_JOB_NODELIST")) {
        n->way = WAY_SLURM;
        error = add_slurm(n, why);
    }
    if (!error && (hosts || hostfile) && !n->count)
        return str_fail(why, -EINVAL, "%s: names no host", hosts ? "--hosts" : "--hostfile");
    /* the batch script of a job with one node runs on that node */
    bool here = n->way == WAY_SLURM && n->count == 1 && getenv("SLURMD_NODENAME");
    if (!error && (here || !n->count)) {
        n->way = WAY_ALONE;
        if (!n->count)
            error = add_node(n, "localhost", strlen("localhost"), why);
    }
    return error;
}

/* --- starting agents --- */

static _Noreturn void become_starter(const struct launch_nodes *n, const char *host, int in, int out, int errors)
{
    char program[PATH_MAX], quoted[8192], rsh[1024], *words[WORDS + 16];
    CLEANUP_STR struct str line = STR_INIT, list = STR_INIT;
    size_t count = 0;
    child_self(program);
    str_adds(&line, "exec ");
    str_add_shell_quoted(&line, program);
    snprintf(quoted, sizeof quoted, "%s launch --agent", line.data ? line.data : "");
    snprintf(rsh, sizeof rsh, "%s", launch_rsh());
    str_addf(&list, "--nodelist=%s", host);
    /* signals of the terminal are for `launch`, which passes them on */
    setsid();
    process_reset_signals();
    dup2(in, 0);
    dup2(out, 1);
    dup2(errors, 2);
    bool here = n->way == WAY_HOSTS && !getenv("DEALFS_RSH") &&
                (strcmp(host, place_host()) == 0 || strcmp(host, "localhost") == 0);
    if (here) {
        execl(program, "dealfs", "launch", "--agent", (char *)NULL);
    } else if (n->way == WAY_SLURM) {
        execlp("srun", "srun", "--overlap", "--immediate=20", "--nodes=1", "--ntasks=1", "--ntasks-per-node=1",
               list.data, "--cpu-bind=none", "--mpi=none", "--quiet", "--job-name=dealfs-launch", program, "launch",
               "--agent", (char *)NULL);
    } else {
        count = launch_split(rsh, words, 0, WORDS);
        words[count++] = (char *)host;
        words[count++] = quoted;
        words[count] = NULL;
        execvp(words[0], words);
    }
    fprintf(stderr, "%s: %s\n", n->way == WAY_SLURM ? "srun" : here ? program : words[0], strerror(errno));
    _exit(127);
}

/* ours[0] reads, ours[1] writes. */
static int make_channel(int ours[2], int theirs[2])
{
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(from, O_CLOEXEC) < 0) {
        int error = -errno;
        close(to[0]);
        close(to[1]);
        return error;
    }
    theirs[0] = to[0];
    ours[1] = to[1];
    ours[0] = from[0];
    theirs[1] = from[1];
    return 0;
}

static int start_process(struct launch_nodes *n, struct launch_node *node, const int theirs[2], struct str *why)
{
    if (n->way == WAY_ALONE) {
        int error = agent_start(&n->alone, theirs[0], theirs[1], true);
        node->starter = error ? 0 : n->alone.pid;
        return error;
    }
    pid_t child = child_fork(&node->errors);
    if (child == 0)
        become_starter(n, node->host, theirs[0], theirs[1], node->errors);
    if (child < 0)
        return place_error(why, "start", node->host, child);
    node->starter = child;
    return 0;
}

int launch_nodes_start(struct launch_nodes *n, unsigned i, struct str *why)
{
    struct launch_node *node = &n->node[i];
    int ours[2] = {-1, -1}, theirs[2] = {-1, -1};
    int error = make_channel(ours, theirs);
    if (error)
        return error;
    channel_init(&node->channel, ours[0], ours[1]);
    error = start_process(n, node, theirs, why);
    close(theirs[0]);
    close(theirs[1]);
    return error;
}

void launch_nodes_fini(struct launch_nodes *n)
{
    uint64_t deadline = clock_now() + END_MS * MILLISECOND;
    for (unsigned i = 0; i < n->count; i++)
        channel_fini(&n->node[i].channel);
    for (unsigned i = 0; i < n->count; i++) {
        struct launch_node *node = &n->node[i];
        if (n->way == WAY_ALONE && node->starter) {
            agent_end(&n->alone, deadline);
            agent_finish(&n->alone);
        } else {
            child_end(node->starter, deadline);
        }
        if (node->errors >= 0)
            close(node->errors);
        str_fini(&node->words);
        free(node->host);
    }
    free(n->node);
    *n = (struct launch_nodes){0};
}
