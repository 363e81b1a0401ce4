/* Runs worlds by seed, each in its own child: tests/sim/run [SEED] [OPTION…]. See HACKING.md.
 *
 * A failing seed is repeated with fewer nodes, faults and readers, as long as it still fails. */
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "fs/base/size.h"
#include "fs/catalog/scanner.h"
#include "tests/lib/tap.h"
#include "tests/sim/faults.h"
#include "tests/sim/node.h"
#include "tests/sim/power.h"
#include "tests/sim/rewrite.h"
#include "tests/sim/work.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define SECOND UINT64_C(1000000000)

enum { FILES = 48, LARGE_FILE = 5 << 20, PATIENCE_S = 120, FAULTS_MOST = 12, THREADS = 400, JOBS_MOST = 64 };

/* What a child says when all is well. */
struct result {
    uint64_t digest, switches, time, effects[EFFECTS];
};

struct playing {
    struct sim_options options;
    uint64_t seeds;
    uint32_t jobs;
    bool twice, shrink, quiet, until_found;
};

/* What workers share. */
static struct {
    _Atomic uint64_t next; /* how many seeds have been begun */
    atomic_bool found;
    struct tally {
        struct result sum;
        uint64_t failed;
    } tally[JOBS_MOST];
} * shared;

static uint32_t worker; /* the number of this one */
static struct dataset datasets[2];

/* The same for all files and directories, so that digests are the same in each run of this program. */
static void set_time(const char *name)
{
    static const struct timespec then[2] = {{1000000000, 0}, {1000000000, 0}};
    if (utimensat(sim_dataset.root, name, then, 0))
        bail_out("set the time of %s", name);
}

static void add_file(const char *name, uint64_t size)
{
    dataset_add(&sim_dataset, name, size);
    set_time(name);
}

/* Large files cost as much time as all the rest: one of four worlds has them. */
static void make_dataset(bool large)
{
    const struct scan_options options = {.rescan = RESCAN_ALWAYS, .ignore_ctime = true};
    struct scan_progress progress;
    struct str why = STR_INIT;
    dataset_begin(&sim_dataset);
    for (uint64_t i = 0; i < FILES; i++) {
        char name[64];
        snprintf(name, sizeof name, "d%d/%s-%02d", (int)i % 4, i % 5 ? "random" : "sparse", (int)i);
        add_file(name, 1 + i * 397 + (i % 16 ? 0 : 150000 + i * 5003));
    }
    if (large) {
        add_file("large/sparse-values", LARGE_FILE);             /* kept by its values, not whole */
        add_file("large/sparse-stripes", EXTENT_BYTES + 300000); /* two extents; the first is too large for any node */
    }
    static const char *const directories[] = {".", "d0", "d1", "d2", "d3", "large"};
    for (size_t i = 0; i < sizeof directories / sizeof *directories - !large; i++)
        set_time(directories[i]);
    if (scan_source(sim_dataset.root, test_path("catalog-%d", large), &options, &sim_dataset.catalog, &why, &progress))
        bail_out("scan: %s", why.data);
    datasets[large] = sim_dataset;
}

/* --- a child --- */

static void play_world(const struct sim_options *o, const char *directory)
{
    sim_process_enter(sim_process_new(0, "machine"));
    net_begin();
    power_begin(directory);
    rewrite_begin();
    for (uint32_t i = 0; i < o->nodes; i++)
        node_init(i, directory);
    bool lack = sim_random(8) == 0;
    if (lack)
        nodes_lack(test_path("catalog-%d", o->large));
    for (uint32_t i = 0; i < o->nodes; i++)
        if (!sim_nodes[i].bare)
            node_start_server(&sim_nodes[i]);
    for (uint32_t i = 0; i < o->nodes; i++)
        if (!sim_nodes[i].bare)
            sim_wait(node_serves, &sim_nodes[i], SIM_NEVER, "a server");
    if (sim_random(8) == 0) {
        nodes_join(true);
        sim_wait(nodes_have_left, NULL, SIM_NEVER, "the end of a world that may not be");
    }
    nodes_join(false);
    if (lack)
        nodes_await_mounts();
    work_begin();
    faults_begin();
    uint64_t end = sim_now() + o->seconds * SECOND;
    while (sim_now() < end)
        nanosleep(&(struct timespec){1, 0}, NULL);
    faults_end();
    work_end();
    work_check_idle();
    for (uint32_t i = 0; i < o->nodes; i++)
        node_stop(&sim_nodes[i]);
}

void __gcov_dump(void) __attribute__((weak)); /* _exit does not: HACKING.md */

static void run_child(const struct sim_options *o, const char *directory, int out)
{
    char path[256];
    struct result r;
    snprintf(path, sizeof path, "%s/log", directory);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(log, STDOUT_FILENO);
    alarm(PATIENCE_S);
    log_open("sim", o->history ? STDERR_FILENO : log, false);
    sim_options = o;
    sim_dataset = datasets[o->large];
    sim_hidden = directory;
    setenv("DEALFS_PING_LOST", "10", 1);
    if (o->faults)
        rewrite_prepare(directory);
    sim_begin(o->seed, o->history);
    uint64_t began = sim_now();
    play_world(o, directory);
    r = (struct result){.digest = sim_digest(), .switches = sim_switches(), .time = sim_now() - began};
    memcpy(r.effects, effects, sizeof effects);
    sim_end();
    if (__gcov_dump)
        __gcov_dump();
    _exit(write(out, &r, sizeof r) == sizeof r ? 0 : 1);
}

/* --- the parent --- */

/* What a child has written to stderr: a file, which takes all at once, so that no history depends on who reads it. */
static void show_output(void)
{
    char bytes[4096];
    int fd = open(test_path("output-%u", worker), O_RDONLY | O_CLOEXEC);
    for (ssize_t n; fd >= 0 && (n = read(fd, bytes, sizeof bytes)) > 0;)
        (void)!write(STDERR_FILENO, bytes, (size_t)n);
    close(fd);
}

/* 0, or the wait status of a child that failed. What it says of itself is shown, or not. */
static int play(const struct sim_options *o, bool quiet, struct result *result)
{
    const char *directory = test_path("world-%u", worker);
    int ends[2], status = 0;
    if (dir_make(directory, 0700) || pipe(ends) < 0)
        bail_out("a directory for a world");
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        bail_out("fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        dup2(open(test_path("output-%u", worker), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600), STDERR_FILENO);
        run_child(o, directory, ends[1]);
    }
    close(ends[1]);
    waitpid(child, &status, 0);
    if (read(ends[0], result, sizeof *result) != sizeof *result && !status)
        status = 1;
    close(ends[0]);
    dir_remove_tree(AT_FDCWD, directory);
    if (!quiet)
        show_output();
    return status;
}

/* The smallest number from `least` on with which it still fails, tried by halves. */
static void shrink_number(struct sim_options *o, uint32_t *number, uint32_t least)
{
    struct result r;
    uint32_t low = least, best = *number;
    while (low < best) {
        *number = (low + best) / 2;
        if (play(o, true, &r))
            best = *number;
        else
            low = *number + 1;
    }
    *number = best;
}

static void shrink(const struct sim_options *found)
{
    struct sim_options o = *found;
    shrink_number(&o, &o.faults, 0);
    shrink_number(&o, &o.nodes, 2);
    shrink_number(&o, &o.readers, 0);
    shrink_number(&o, &o.seconds, 1);
    printf("# shorter: tests/sim/run %" PRIu64 " --nodes=%u --faults=%u --readers=%u --seconds=%u%s%s --history\n",
           o.seed, o.nodes, o.faults, o.readers, o.seconds, o.bug ? " --bug=" : "", o.bug ? o.bug : "");
}

/* What a seed decides where the command does not. Half of all seeds have no faults. */
static struct sim_options choose(const struct sim_options *given)
{
    struct sim_options o = *given;
    uint64_t random = o.seed;
    if (!o.nodes)
        o.nodes = random_next(&random) % 2 ? 4 : 2 + (uint32_t)(random_next(&random) % 7);
    if (o.faults == UINT32_MAX)
        o.faults = random_next(&random) % 2 ? (uint32_t)(random_next(&random) % FAULTS_MOST) : 0;
    if (o.readers == UINT32_MAX)
        o.readers = 2 * o.nodes;
    if (random_next(&random) % 20 == 0)
        o.rocks = true;
    o.large = random_next(&random) % 4 == 0;
    return o;
}

static void add_result(struct result *sum, const struct result *r)
{
    sum->switches += r->switches;
    sum->time += r->time;
    for (int i = 0; i < EFFECTS; i++)
        if (i != EFFECT_MEMORY)
            sum->effects[i] += r->effects[i];
        else if (r->effects[i] > sum->effects[i])
            sum->effects[i] = r->effects[i];
}

static bool play_seed(const struct playing *p, uint64_t seed, struct result *sum)
{
    struct sim_options o = p->options;
    struct result r, again;
    o.seed = seed;
    o = choose(&o);
    int status = play(&o, p->quiet, &r);
    bool differs = !status && p->twice && !o.rocks && (play(&o, p->quiet, &again) || again.digest != r.digest);
    if (!status && !differs) {
        add_result(sum, &r);
        return true;
    }
    printf("# seed %" PRIu64 " %s (%s %d): tests/sim/run %" PRIu64 " --seconds=%u --history\n", seed,
           differs ? "is not played the same way twice" : "fails", WIFSIGNALED(status) ? "signal" : "status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), seed, o.seconds);
    if (p->shrink && status)
        shrink(&o);
    return false;
}

static void play_seeds(const struct playing *p, struct tally *tally)
{
    uint64_t i;
    while (!(p->until_found && shared->found) && (i = shared->next++) < p->seeds)
        if (!play_seed(p, p->options.seed + i, &tally->sum)) {
            tally->failed++;
            shared->found = true;
        }
    fflush(NULL);
}

/* Each worker is a process, with a directory of its own for worlds. */
static struct tally play_all(const struct playing *p)
{
    struct tally all = {.failed = 0};
    pid_t child[JOBS_MOST];
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        bail_out("memory for the workers");
    for (worker = 0; worker < p->jobs; worker++)
        if ((child[worker] = fork()) == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            play_seeds(p, &shared->tally[worker]);
            _exit(0);
        }
    for (uint32_t i = 0; i < p->jobs; i++) {
        int status;
        if (child[i] < 0 || waitpid(child[i], &status, 0) < 0 || status)
            bail_out("worker %u", i);
        add_result(&all.sum, &shared->tally[i].sum);
        all.failed += shared->tally[i].failed;
    }
    return all;
}

static uint64_t number(const char *text, const char *name)
{
    uint64_t n;
    if (!text || number_parse(text, 0, UINT64_MAX, &n))
        bail_out("%s: a number is expected", name);
    return n;
}

static struct playing parse(int argc, char **argv)
{
    struct playing p = {
        .options = {.faults = UINT32_MAX, .readers = UINT32_MAX, .seconds = 30}, .seeds = 1, .jobs = 1, .shrink = true};
    bool no_shrink = false;
    const struct {
        const char *name;
        uint64_t *wide;
        uint32_t *number;
        bool *flag;
    } words[] = {
        {"seeds", .wide = &p.seeds},
        {"first", .wide = &p.options.seed},
        {"nodes", .number = &p.options.nodes},
        {"faults", .number = &p.options.faults},
        {"readers", .number = &p.options.readers},
        {"seconds", .number = &p.options.seconds},
        {"jobs", .number = &p.jobs},
        {"rocks", .flag = &p.options.rocks},
        {"history", .flag = &p.options.history},
        {"twice", .flag = &p.twice},
        {"until-found", .flag = &p.until_found},
        {"no-shrink", .flag = &no_shrink},
        {"quiet", .flag = &p.quiet},
        {.name = "bug"},
    };
    enum { WORDS = sizeof words / sizeof *words };
    struct option options[WORDS + 1] = {0};
    for (int i = 0; i < WORDS; i++)
        options[i] = (struct option){words[i].name, !words[i].flag, NULL, i};
    for (int i; (i = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (i == '?')
            exit(2);
        if (words[i].wide)
            *words[i].wide = number(optarg, words[i].name);
        else if (words[i].number)
            *words[i].number = (uint32_t)number(optarg, words[i].name);
        else if (words[i].flag)
            *words[i].flag = true;
        else
            p.options.bug = optarg;
    }
    p.shrink = !no_shrink && !p.options.history;
    if (optind < argc)
        p.options.seed = number(argv[optind], "SEED");
    if (p.options.nodes > NET_NODES)
        bail_out("nodes: at most %d", NET_NODES);
    if (!p.jobs || p.jobs > JOBS_MOST)
        bail_out("jobs: 1 to %d", JOBS_MOST);
    return p;
}

int main(int argc, char **argv)
{
    struct playing p = parse(argc, argv);
    struct timespec from, to;
    sim_tune_memory();
    make_dataset(false);
    make_dataset(true);
    sim_prepare(THREADS);
    clock_gettime(CLOCK_MONOTONIC, &from);
    struct tally all = play_all(&p);
    clock_gettime(CLOCK_MONOTONIC, &to);
    uint64_t played = shared->next < p.seeds ? shared->next : p.seeds, good = played - all.failed;
    double took = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
    printf("# %" PRIu64 " seeds from %" PRIu64 " on, %" PRIu64 " failed; %u workers, %.1f seeds/s; per seed %" PRIu64
           " switches and %.1f virtual seconds\n",
           played, p.options.seed, all.failed, p.jobs, (double)played / took, good ? all.sum.switches / good : 0,
           good ? (double)all.sum.time / 1e9 / (double)good : 0);
    for (int i = 0; i < EFFECTS; i++)
        printf("%s%" PRIu64 " %s%s", i ? ", " : "# ", all.sum.effects[i], effect_names[i], i + 1 < EFFECTS ? "" : "\n");
    return all.failed != 0;
}
