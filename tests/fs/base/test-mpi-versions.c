/* fs/base/mpi-versions.h: names of both versions. Whether Open MPI knows them is seen by worlds of several nodes. */
#include "fs/base/mpi-versions.h"
#include "tests/lib/tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_versions(void)
{
    unsetenv("OMPI_VERSION");
    unsetenv("PRTE_LAUNCHED");
    unsetenv("OMPI_MCA_orte_hnp_uri");
    is_uint(open_mpi_of_mpirun(), 0, "no mpirun, or one that nobody knows");
    setenv("OMPI_MCA_orte_hnp_uri", "1.0;tcp://127.0.0.1:1", 1);
    is_uint(open_mpi_of_mpirun(), 4, "that of 4.1 has no version, but its daemon's address");
    setenv("OMPI_VERSION", "5.0.7", 1);
    is_uint(open_mpi_of_mpirun(), 4, "whatever else is called a version");
    setenv("PRTE_LAUNCHED", "1", 1);
    is_uint(open_mpi_of_mpirun(), 5, "that of 5.0 has one");
    setenv("OMPI_VERSION", "10.1", 1);
    is_uint(open_mpi_of_mpirun(), 10, "of two digits");
    is_uint(open_mpi_in("Open MPI v5.0.7, package: Debian OpenMPI, ident: 5.0.7"), 5, "the library's own words");
    is_uint(open_mpi_in("another MPI"), 0, "which may have none");
}

static void is_set(const char *name, const char *value)
{
    is_str(getenv(name) ? getenv(name) : "", value, "%s", name);
}

static void test_parameters(void)
{
    setenv("OMPI_MCA_btl_sm_eager_limit", "4096", 1);
    open_mpi_prepare(false);
    is_set("OMPI_MCA_btl_sm_eager_limit", "4096");
    is_set("OMPI_MCA_btl_vader_eager_limit", "262144");
    ok(!getenv("OMPI_MCA_smsc"), "a process that stays its user's reads from others");
    setenv("OMPI_MCA_smsc", "cma", 1);
    open_mpi_prepare(true);
    is_set("OMPI_MCA_smsc", "^cma");
    is_set("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
    ok(!getenv("PRTE_MCA_plm_ssh_agent"), "mpirun uses ssh");
    open_mpi_start();
    open_mpi_start_by("/usr/bin/my-ssh");
    is_set("OMPI_MCA_plm_rsh_agent", "/usr/bin/my-ssh");
    is_set("PRTE_MCA_plm_ssh_agent", "/usr/bin/my-ssh");
    is_set("PRTE_MCA_oob_tcp_keepalive_time", "30");
    ok((getenv("OMPI_ALLOW_RUN_AS_ROOT") != NULL) == (geteuid() == 0), "root may run it");
}

static void test_sessions(void)
{
    static const struct {
        const char *name;
        pid_t pid;
    } of[] = {
        {"prterun.node.17.1000", 17}, {"prted.node.17.1000", 17},    {"prterun.node.17.1001", 0},
        {"prterun.node7.17.1000", 0}, {"prterun.node.7.17.1000", 0}, {"prterun.node..1000", 0},
        {"prterun.node.0.1000", 0},   {"prterun.node.17", 0},        {"pid.17", 0},
    };
    char name[64];
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        is_int(open_mpi_session(of[i].name, "node", 1000), of[i].pid, "%s", of[i].name);
    open_mpi_sessions("node", 1000, name, sizeof name);
    is_str(name, "ompi.node.1000", "the directory of 4.1");
    is_int(open_mpi_session_in("pid.17"), 17, "with one per mpirun");
    is_int(open_mpi_session_in("pid.x"), 0, "and others");
    ok(open_mpi_is_segment("vader_segment.node.0.1.0") && open_mpi_is_segment("sm_segment.node.0.1.0"), "segments");
    ok(!open_mpi_is_segment("sem.node"), "and not");
}

int main(void)
{
    unsetenv("OMPI_ALLOW_RUN_AS_ROOT");
    test_versions();
    test_parameters();
    test_sessions();
    return done_testing();
}
