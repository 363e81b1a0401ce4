/* Launchers are known by what they put into the environment. Open MPI's mpirun says most; srun with PMIx, and others that
 * speak it, the rank only, where Slurm knows the rest. Slurm sets its own variables also where it starts tasks that know
 * nothing of each other, and in a batch script, which is no task: there the variables of a step are missing. */
#include "cli/launcher.h"

#include "fs/base/size.h"
#include "fs/world/directory.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static bool variable(const char *name, unsigned least, unsigned *value)
{
    const char *text = getenv(name);
    uint64_t number;

    if (!text || number_parse(text, least, NODES_MOST, &number))
        return false;
    *value = (unsigned)number;
    return true;
}

static bool is_open_mpi(struct launcher *l)
{
    if (!variable("OMPI_COMM_WORLD_SIZE", 1, &l->size) || !variable("OMPI_COMM_WORLD_RANK", 0, &l->rank))
        return false;
    l->name = "mpirun";
    variable("OMPI_COMM_WORLD_LOCAL_SIZE", 1, &l->local);
    return true;
}

static bool is_slurm_step(unsigned *size, unsigned *rank)
{
    return getenv("SLURM_STEP_ID") && variable("SLURM_STEP_NUM_TASKS", 1, size) && variable("SLURM_PROCID", 0, rank);
}

static bool is_pmix(struct launcher *l)
{
    unsigned rank;

    if (!getenv("PMIX_NAMESPACE") || !variable("PMIX_RANK", 0, &l->rank))
        return false;
    l->name = is_slurm_step(&l->size, &rank) ? "srun" : "a PMIx launcher";
    return true;
}

static bool is_deaf(struct launcher *l)
{
    if (is_slurm_step(&l->size, &l->rank))
        l->name = "srun";
    else if (variable("PMI_SIZE", 1, &l->size) && variable("PMI_RANK", 0, &l->rank))
        l->name = "mpiexec";
    else
        return false;
    l->deaf = l->size > 1;
    return l->deaf;
}

void launcher_find(struct launcher *l)
{
    *l = (struct launcher){.local = 1};
    if (!is_open_mpi(l) && !is_pmix(l) && !is_deaf(l))
        *l = (struct launcher){.local = 1};
}

void launcher_say_deaf(const struct launcher *l, const char *command, struct str *why)
{
    if (strcmp(l->name, "srun") == 0)
        str_addf(why, "%s: srun has started %u tasks without PMIx, so that each would be a world of its own; use `srun "
                 "--mpi=pmix` (`srun --mpi=list` shows whether it is there) or Open MPI's mpirun", command, l->size);
    else
        str_addf(why, "%s: %s, which is not Open MPI's, has started %u processes, so that each would be a world of its own; "
                 "use Open MPI's mpirun", command, l->name, l->size);
}

static bool is_launchers(const char *variable)
{
    static const char *const prefixes[] = {"OMPI_", "ORTE_", "PMIX_", "PMI_", "PRTE_", "HYDRA_", "HYDI_"};

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* A mask of all processors there could be: the kernel leaves those that the control group has. */
static void free_processors(void)
{
    enum { PROCESSORS = 8192 };
    cpu_set_t *all = CPU_ALLOC(PROCESSORS);

    if (!all)
        return;
    memset(all, 0xff, CPU_ALLOC_SIZE(PROCESSORS));
    sched_setaffinity(0, CPU_ALLOC_SIZE(PROCESSORS), all);
    CPU_FREE(all);
}

void launcher_leave(void)
{
    char name[128];

    for (char **v = environ; *v;) {
        size_t n = strcspn(*v, "=");
        if (!is_launchers(*v) || n >= sizeof name) {
            v++;
            continue;
        }
        memcpy(name, *v, n);
        name[n] = '\0';
        if (unsetenv(name)) /* the next one comes to its place */
            v++;
    }
    free_processors();
}
