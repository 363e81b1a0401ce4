/* Open MPI reads its settings from OMPI_MCA_* in the environment; mpirun puts those of its command line there. */
#include "mpi/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

void environment_tune(void)
{
    static const char *const settings[][2] = {
        /* A sample then is one message without a handshake. */
        {"OMPI_MCA_btl_tcp_eager_limit", "262144"},
        {"OMPI_MCA_btl_tcp_max_send_size", "262144"},
        /* One descriptor to sleep on: mpi/sockets.h. */
        {"OMPI_MCA_opal_event_include", "epoll"},
        /* The join waits; others may need the processor. */
        {"OMPI_MCA_mpi_yield_when_idle", "1"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        setenv(settings[i][0], settings[i][1], 0);
}

static bool is_launchers(const char *setting)
{
    static const char *const prefixes[] = {"OMPI_", "PMIX_", "PMI_", "PRTE_", "ORTE_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(setting, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

void environment_leave(void)
{
    for (char **e = environ; *e;) {
        char name[256];
        size_t n = strcspn(*e, "=");
        if (!is_launchers(*e) || n >= sizeof name) {
            e++;
            continue;
        }
        memcpy(name, *e, n);
        name[n] = '\0';
        if (unsetenv(name))
            e++;
    }
    setenv("DEALFS_ALONE", "1", 1);
}

static long number_of(const char *name)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : 0;
}

int environment_check_size(int size, struct str *why)
{
    /* SLURM_NTASKS is seen by all of a batch job; that of the step, by what srun started only. */
    static const char *const sizes[] = {"SLURM_STEP_NUM_TASKS", "PMI_SIZE", "MPI_LOCALNRANKS", "PALS_SIZE"};
    if (size != 1 || getenv("OMPI_COMM_WORLD_SIZE"))
        return 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (number_of(sizes[i]) <= 1)
            continue;
        str_addf(why,
                 "the launcher started %ld processes (%s), and each is alone: it does not speak PMIx with Open MPI; "
                 "use mpirun, or srun --mpi=pmix",
                 number_of(sizes[i]), sizes[i]);
        return -EPROTO;
    }
    return 0;
}
