/* dealfs-courier: carries requests and samples between the nodes of a world. A launcher (mpirun, or srun with PMIx)
 * starts one per node, through `dealfs mount` or `dealfs join`. It makes the mount if there is none, forms a world with
 * the others, and then serves the node's server until the world ends. However it ends, mounts are not affected.
 *
 * One thread. MPI has other threads in this process; none of them runs our code. */
#include "fs/base/log.h"
#include "fs/base/mpi-versions.h"
#include "fs/base/process.h"
#include "mpi/beats.h"
#include "mpi/courier.h"
#include "mpi/signals.h"

#include <inttypes.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_DONE = 0, STATUS_FAILED = 1, STATUS_USAGE = 2, FINALIZE_S = 5 };

/* Two versions of Open MPI do not understand each other: MPI_Init would fail for a reason that nobody can guess. */
static int check_mpirun(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int n;
    unsigned starter = open_mpi_of_mpirun();
    MPI_Get_library_version(text, &n);
    if (!starter || starter == open_mpi_in(text))
        return 0;
    log_error(
        "the mpirun that started it is of Open MPI %u, but dealfs-courier uses Open MPI %u: use the mpirun of that "
        "one, or build dealfs with the other",
        starter, open_mpi_in(text));
    return -EPROTO;
}

/* Root's rights are only needed in MPI_Init, which contacts a launcher of the same user. Before this process opens a
 * file of the mount's owner, it becomes that user permanently. */
static int become_owner(const struct arguments *a)
{
    int error = a->uid ? process_become((uid_t)a->uid, (gid_t)a->gid) : 0;
    if (error)
        log_error("become user %" PRIu64 ": %s", a->uid, strerror(-error));
    return error;
}

static int last_tag(void)
{
    int *most, found = 0;
    if (MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found) != MPI_SUCCESS || !found)
        return COURIER_TAG;
    return *most;
}

static int end_courier(struct courier *c, int error)
{
    courier_end(c, error);
    if (!courier_in_order(error))
        _exit(STATUS_FAILED);
    signal(SIGALRM, SIG_DFL);
    alarm(FINALIZE_S); /* MPI_Finalize waits for all nodes; this process must not hang if one does not come */
    MPI_Finalize();
    return error ? STATUS_FAILED : STATUS_DONE;
}

static int prepare_courier(struct courier *c, int argc, char **argv)
{
    c->signals = signals_open();
    if (arguments_parse(argc, argv, &c->arguments))
        return -EINVAL;
    if (spoil_parse(getenv("DEALFS_COURIER_FAULTS"), &c->spoil)) {
        log_error("DEALFS_COURIER_FAULTS=%s: not understood", getenv("DEALFS_COURIER_FAULTS"));
        return -EINVAL;
    }
    if (c->signals < 0) {
        log_error("watch for signals: %s", strerror(-c->signals));
        return c->signals;
    }
    c->helper = (struct courier_helper){.socket = -1};
    if (!c->arguments.command[0])
        return 0;
    int error = helper_start(&c->helper, &c->arguments);
    if (error)
        log_error("start a helper: %s", strerror(-error));
    return error;
}

static int init_mpi(void)
{
    return MPI_Init(NULL, NULL);
}

/* One process says it for all. */
static const char *init_notice(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMIX_RANK");
    return rank && strcmp(rank, "0") == 0 ? "MPI_Init waits for processes of other nodes: look whether each node runs "
                                            "dealfs-courier, and whether the nodes reach each other"
                                          : NULL;
}

int main(int argc, char **argv)
{
    static struct courier c;
    int error = prepare_courier(&c, argc, argv);
    if (error)
        return error == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
    if (check_mpirun())
        return STATUS_FAILED;
    open_mpi_prepare(c.arguments.uid != 0);
    if (c.arguments.uid && process_leave_keyring()) /* MPI's threads inherit the keyring of this thread */
        return STATUS_FAILED;
    if (signals_obey_during(init_mpi, init_notice()) != MPI_SUCCESS)
        return STATUS_FAILED;
    error = become_owner(&c.arguments);
    if (error)
        MPI_Abort(MPI_COMM_WORLD, STATUS_FAILED);
    c.last_tag = last_tag();
    error = courier_form(&c);
    beats_end();
    if (!error) {
        /* from now on log lines have the time and the node's number */
        log_open("dealfs-courier", STDERR_FILENO, false);
        error = courier_serve(&c);
    }
    return end_courier(&c, error);
}
