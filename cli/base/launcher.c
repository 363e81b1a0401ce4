/* Launchers are recognised by environment variables. Open MPI's mpirun provides most; srun with PMIx, and other users
 * of PMIx, only the rank, and Slurm provides the rest. Slurm also sets its variables for tasks that know nothing of
 * each other, and in a batch script, which is not a task: there the variables of a step are missing. */
#include "cli/base/launcher.h"

#include "fs/base/size.h"
#include "fs/wire/node.h"

#include <stdlib.h>
#include <string.h>

static bool read_variable(const char *name, unsigned least, unsigned *value)
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
    if (!read_variable("OMPI_COMM_WORLD_SIZE", 1, &l->size) || !read_variable("OMPI_COMM_WORLD_RANK", 0, &l->rank))
        return false;
    l->name = "mpirun";
    read_variable("OMPI_COMM_WORLD_LOCAL_SIZE", 1, &l->local);
    return true;
}

static bool is_slurm_step(unsigned *size, unsigned *rank)
{
    return getenv("SLURM_STEP_ID") && read_variable("SLURM_STEP_NUM_TASKS", 1, size) &&
           read_variable("SLURM_PROCID", 0, rank);
}

static bool is_pmix(struct launcher *l)
{
    unsigned rank;
    if (!getenv("PMIX_NAMESPACE") || !read_variable("PMIX_RANK", 0, &l->rank))
        return false;
    l->name = is_slurm_step(&l->size, &rank) ? "srun" : "a PMIx launcher";
    return true;
}

static bool is_deaf(struct launcher *l)
{
    if (is_slurm_step(&l->size, &l->rank))
        l->name = "srun";
    else if (read_variable("PMI_SIZE", 1, &l->size) && read_variable("PMI_RANK", 0, &l->rank))
        l->name = "mpiexec";
    else
        return false;
    l->deaf = l->size > 1;
    return l->deaf;
}

/* Slurm does not report the number on this host: the first one may be the only one. */
static int find_slot(const struct launcher *l)
{
    unsigned slot;
    if (!read_variable("OMPI_COMM_WORLD_LOCAL_RANK", 0, &slot) && !read_variable("SLURM_LOCALID", 0, &slot))
        return -1;
    return l->local > 1 || slot > 0 ? (int)slot : -1;
}

void launcher_find(struct launcher *l)
{
    *l = (struct launcher){.local = 1};
    if (!is_open_mpi(l) && !is_pmix(l) && !is_deaf(l))
        *l = (struct launcher){.local = 1};
    l->slot = l->name ? find_slot(l) : -1;
}

void launcher_say_deaf(const struct launcher *l, const char *command, struct str *why)
{
    if (strcmp(l->name, "srun") == 0)
        str_addf(why,
                 "%s: srun started %u tasks without PMIx, so each would form its own world: use `srun --mpi=pmix` "
                 "(`srun --mpi=list` shows whether it is available) or Open MPI's mpirun",
                 command, l->size);
    else
        str_addf(why,
                 "%s: %s, which is not Open MPI's, started %u processes, so each would form its own world: "
                 "use Open MPI's mpirun",
                 command, l->name, l->size);
}
