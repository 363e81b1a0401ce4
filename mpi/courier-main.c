/* dealfs-courier: carries requests and samples between the nodes of a world. A launcher (mpirun, or srun with PMIx)
 * starts one per node, through `dealfs mount` or `dealfs join`. It makes the mount if there is none, forms a world with
 * the others, and then serves the node's server until the world ends. However it ends, mounts are not affected.
 *
 * One thread. MPI has other threads in this process; none of them runs our code. */
#include "fs/base/log.h"
#include "fs/base/process.h"
#include "mpi/courier.h"
#include "mpi/signals.h"

#include <inttypes.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_DONE = 0, STATUS_FAILED = 1, STATUS_USAGE = 2, FINALIZE_S = 5 };

/* Sets parameters of Open MPI that the user has not set. Open MPI reads them in MPI_Init; mpirun also passes its
 * command line's parameters this way. */
static void tune_mpi(const struct arguments *a)
{
    static const char *const settings[][2] = {
        /* A sample is then one message without a handshake. In shared memory it is copied twice, which takes less time
         * than one copy by process_vm_readv. The segment has room for 50 of these messages per courier. */
        {"OMPI_MCA_btl_tcp_eager_limit", "262144"},
        {"OMPI_MCA_btl_tcp_max_send_size", "262144"},
        {"OMPI_MCA_btl_vader_eager_limit", "262144"},
        {"OMPI_MCA_btl_vader_segment_size", "16777216"},
        /* One descriptor to sleep on: see mpi/sockets.h. */
        {"OMPI_MCA_opal_event_include", "epoll"},
        /* The join waits; other processes may need the processor. */
        {"OMPI_MCA_mpi_yield_when_idle", "1"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        setenv(settings[i][0], settings[i][1], 0);
    /* A process that was root cannot read the memory of another one: samples use shared memory. */
    if (a->uid)
        setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 1);
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

int main(int argc, char **argv)
{
    static struct courier c;
    int error = prepare_courier(&c, argc, argv);
    if (error)
        return error == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
    tune_mpi(&c.arguments);
    if (c.arguments.uid && process_leave_keyring()) /* MPI's threads inherit the keyring of this thread */
        return STATUS_FAILED;
    if (signals_obey_during(init_mpi) != MPI_SUCCESS)
        return STATUS_FAILED;
    error = become_owner(&c.arguments);
    if (error)
        MPI_Abort(MPI_COMM_WORLD, STATUS_FAILED);
    c.last_tag = last_tag();
    error = courier_form(&c);
    if (!error) {
        /* from now on log lines have the time and the node's number */
        log_open("dealfs-courier", STDERR_FILENO, false);
        error = courier_serve(&c);
    }
    return end_courier(&c, error);
}
