/* dealfs-courier: carries requests and samples between the nodes of a world. A launcher (mpirun, or srun with PMIx)
 * starts one on each node, by way of `dealfs mount` or `dealfs join`. It makes the mount where there is none, forms a
 * world with the others, and then serves the node's server until the world ends. Its end, however it comes, harms no
 * mount.
 *
 * One thread. Other threads in this process are MPI's, and none of them runs code of ours. */
#include "fs/base/file.h"
#include "fs/base/log.h"
#include "mpi/environment.h"
#include "mpi/flight.h"
#include "mpi/join.h"
#include "mpi/launch.h"
#include "mpi/loop.h"
#include "mpi/options.h"
#include "mpi/signals.h"

#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_DONE = 0, STATUS_FAILED = 1, STATUS_USAGE = 2, FINALIZE_S = 5 };

struct courier {
    struct options options;
    struct faults faults;
    struct helper helper;
    struct nodes nodes;
    struct link link;
    struct join join;
    struct post *post;
    struct flight *flight;
};

static int last_tag(void)
{
    int *most, found = 0;
    if (MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found) != MPI_SUCCESS || !found)
        return 32767;
    return *most;
}

static int make_flight(struct courier *c)
{
    struct flight_config config = {
        .me = c->nodes.me,
        .nodes = c->nodes.count,
        .timeout = c->join.timeout,
        .last_tag = last_tag(),
        .link = &c->link,
        .doorbell = c->join.doorbell,
        .faults = &c->faults,
    };
    int error = post_create(&c->post);
    config.post = c->post;
    if (!error)
        error = flight_create(&config, &c->flight);
    return agree_on(&c->nodes, error, NULL);
}

static int form_world(struct courier *c)
{
    c->join = (struct join){.options = &c->options, .helper = &c->helper, .nodes = &c->nodes, .link = &c->link};
    int error = agree_begin(&c->nodes);
    if (error)
        return error;
    log_set_node((int)c->nodes.me);
    link_init(&c->link, c->options.state, c->nodes.world);
    error = join_form(&c->join);
    if (!error)
        error = make_flight(c);
    if (!error)
        error = join_live(&c->join);
    helper_end(&c->helper);
    return error;
}

static int work(struct courier *c)
{
    log_open("dealfs-courier", STDERR_FILENO, false); /* its lines have the time and our number from now on */
    struct loop loop = {.link = &c->link, .post = c->post, .doorbell = c->join.doorbell, .flight = c->flight};
    return loop_run(&loop);
}

/* What MPI has not let go of stays as it is until the process ends. */
static void take_apart(struct courier *c)
{
    if (c->post && post_sends(c->post) > 0) {
        link_hang_up(&c->link);
        return;
    }
    post_destroy(c->post);
    flight_destroy(c->flight);
    link_fini(&c->link);
    join_fini(&c->join);
    agree_end(&c->nodes);
}

/* Finalizing waits for all; should one not come, nobody is to hang for it. */
static int leave(struct courier *c, int error)
{
    bool together = error == 0 || error == -ECANCELED;
    if (!together) {
        link_fini(&c->link);
        _exit(STATUS_FAILED);
    }
    take_apart(c);
    signal(SIGALRM, SIG_DFL);
    alarm(FINALIZE_S);
    MPI_Finalize();
    return error ? STATUS_FAILED : STATUS_DONE;
}

static int prepare(struct courier *c, int argc, char **argv)
{
    if (options_parse(argc, argv, &c->options))
        return -EINVAL;
    if (faults_parse(getenv("DEALFS_COURIER_FAULTS"), &c->faults)) {
        log_error("DEALFS_COURIER_FAULTS=%s makes no sense", getenv("DEALFS_COURIER_FAULTS"));
        return -EINVAL;
    }
    c->helper = (struct helper){0, -1, NULL};
    if (!c->options.command[0])
        return 0;
    int error = helper_start(&c->helper, c->options.command);
    if (error)
        log_error("start a helper: %s", strerror(-error));
    return error;
}

int main(int argc, char **argv)
{
    static struct courier c;
    signals_block();
    int error = prepare(&c, argc, argv);
    if (error)
        return error == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
    environment_tune();
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
        return STATUS_FAILED;
    error = form_world(&c);
    if (!error)
        error = work(&c);
    return leave(&c, error);
}
