/* Who started us, from environments as launchers make them. */
#include "cli/base/launcher.h"

#include "fs/base/process.h"
#include "tests/lib/tap.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 6 };

static void test_found(void)
{
    static const struct {
        const char *what, *variable[MOST], *name;
        unsigned rank, size, local;
        bool deaf;
    } table[] = {
        {"nothing", {NULL}, NULL, 0, 0, 1, false},
        {"mpirun",
         {"OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_RANK=3"},
         "mpirun",
         3,
         4,
         2,
         false},
        {"mpirun of one", {"OMPI_COMM_WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=0"}, "mpirun", 0, 1, 1, false},
        {"mpirun in a step of Slurm",
         {"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=1",
          "SLURM_PROCID=0"},
         "mpirun",
         1,
         2,
         1,
         false},
        {"srun --mpi=pmix",
         {"PMIX_RANK=5", "PMIX_NAMESPACE=slurm.pmix.7.0", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=16",
          "SLURM_PROCID=5"},
         "srun",
         5,
         16,
         1,
         false},
        {"another that speaks PMIx", {"PMIX_RANK=5", "PMIX_NAMESPACE=prterun-1"}, "a PMIx launcher", 5, 0, 1, false},
        {"srun without PMIx", {"SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=16", "SLURM_PROCID=5"}, "srun", 5, 16, 1, true},
        {"srun of one task", {"SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=1", "SLURM_PROCID=0"}, NULL, 0, 0, 1, false},
        {"a batch script",
         {"SLURM_JOB_ID=1", "SLURM_NTASKS=16", "SLURM_PROCID=0", "SLURM_NNODES=16"},
         NULL,
         0,
         0,
         1,
         false},
        {"MPICH", {"PMI_SIZE=4", "PMI_RANK=2"}, "mpiexec", 2, 4, 1, true},
        {"what is no number", {"OMPI_COMM_WORLD_SIZE=many", "OMPI_COMM_WORLD_RANK=0"}, NULL, 0, 0, 1, false},
        {"half of it", {"OMPI_COMM_WORLD_SIZE=4", "PMIX_RANK=1"}, NULL, 0, 0, 1, false},
    };
    struct launcher l;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        clearenv();
        for (int v = 0; v < MOST && table[i].variable[v]; v++)
            putenv((char *)table[i].variable[v]);
        launcher_find(&l);
        is_str(l.name ? l.name : "", table[i].name ? table[i].name : "", "%s", table[i].what);
        ok(l.rank == table[i].rank && l.size == table[i].size && l.local == table[i].local && l.deaf == table[i].deaf,
           "and its numbers");
    }
}

static void test_deaf(void)
{
    struct launcher srun = {.name = "srun", .deaf = true, .size = 16},
                    hydra = {.name = "mpiexec", .deaf = true, .size = 4};
    struct str why = STR_INIT;
    launcher_say_deaf(&srun, "mount", &why);
    ok(strstr(why.data, "srun --mpi=pmix"), "what to do under srun");
    str_clear(&why);
    launcher_say_deaf(&hydra, "join", &why);
    ok(strstr(why.data, "Open MPI's mpirun"), "and under another's mpiexec");
    str_fini(&why);
}

static void test_leave(void)
{
    cpu_set_t all, one, now;
    clearenv();
    setenv("PMIX_RANK", "1", 1);
    setenv("PMIX_NAMESPACE", "x", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    setenv("OMPI_MCA_ess", "x", 1);
    setenv("PMI_RANK", "4", 1);
    setenv("SLURM_TMPDIR", "/x", 1);
    setenv("PATH_OMPI_", "y", 1);
    memset(&all, 0xff, sizeof all); /* this program itself may run on some processors only */
    sched_setaffinity(0, sizeof all, &all);
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    sched_setaffinity(0, sizeof one, &one);
    process_leave_launcher();
    ok(!getenv("PMIX_RANK") && !getenv("PMIX_NAMESPACE") && !getenv("OMPI_COMM_WORLD_SIZE") &&
           !getenv("OMPI_MCA_ess") && !getenv("PMI_RANK"),
       "a launcher's variables are gone");
    ok(getenv("SLURM_TMPDIR") && getenv("PATH_OMPI_"), "and no others");
    ok(sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, &all), "all processors are there again");
}

int main(void)
{
    test_found();
    test_deaf();
    test_leave();
    return done_testing();
}
