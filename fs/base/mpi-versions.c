/* Parameters are environment variables: OMPI_MCA_… for the library and for the mpirun of 4.1, PRTE_MCA_… for that of
 * 5.0, which is PRRTE's. */
#include "fs/base/mpi-versions.h"

#include "fs/base/size.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct setting {
    const char *name, *value;
};

static void set_all(const struct setting *s, bool also_given)
{
    for (; s->name; s++)
        setenv(s->name, s->value, also_given);
}

/* --- mpirun --- */

void open_mpi_start(void)
{
    static const struct setting always[] = {{"OMPI_MCA_oob_tcp_keepalive_time", "30"},
                                            {"PRTE_MCA_oob_tcp_keepalive_time", "30"},
                                            {"OMPI_MCA_oob_tcp_keepalive_intvl", "5"},
                                            {"PRTE_MCA_oob_tcp_keepalive_intvl", "5"},
                                            {"OMPI_MCA_oob_tcp_keepalive_probes", "6"},
                                            {"PRTE_MCA_oob_tcp_keepalive_probes", "6"},
                                            {NULL, NULL}};
    static const struct setting root[] = {
        {"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}, {NULL, NULL}};
    set_all(always, false);
    if (geteuid() == 0)
        set_all(root, true);
}

void open_mpi_start_by(const char *rsh)
{
    const struct setting agent[] = {{"OMPI_MCA_plm", "rsh"},
                                    {"OMPI_MCA_plm_rsh_agent", rsh},
                                    {"PRTE_MCA_plm", "ssh"},
                                    {"PRTE_MCA_plm_ssh_agent", rsh},
                                    {NULL, NULL}};
    set_all(agent, true);
}

/* --- couriers --- */

void open_mpi_prepare(bool owned)
{
    static const struct setting settings[] = {
        /* A sample is then one message without a handshake. In shared memory it is copied twice, which takes less time
         * than one copy by process_vm_readv. The segment has room for 50 of these messages per courier. */
        {"OMPI_MCA_btl_tcp_eager_limit", "262144"},
        {"OMPI_MCA_btl_tcp_max_send_size", "262144"},
        {"OMPI_MCA_btl_vader_eager_limit", "262144"},
        {"OMPI_MCA_btl_sm_eager_limit", "262144"},
        {"OMPI_MCA_btl_vader_segment_size", "16777216"},
        {"OMPI_MCA_btl_sm_segment_size", "16777216"},
        /* One descriptor to sleep on: see mpi/sockets.h. */
        {"OMPI_MCA_opal_event_include", "epoll"},
        /* The join waits; other processes may need the processor. */
        {"OMPI_MCA_mpi_yield_when_idle", "1"},
        /* The other component of 5.0 complains about each process on the same host. */
        {"OMPI_MCA_reachable", "weighted"},
        {NULL, NULL}};
    /* A process that was root cannot read the memory of another one: samples use shared memory. */
    static const struct setting apart[] = {
        {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"}, {"OMPI_MCA_smsc", "^cma"}, {NULL, NULL}};
    set_all(settings, false);
    if (owned)
        set_all(apart, true);
}

unsigned open_mpi_in(const char *text)
{
    while (*text && (*text < '0' || *text > '9'))
        text++;
    return (unsigned)strtoul(text, NULL, 10);
}

unsigned open_mpi_of_mpirun(void)
{
    enum { ORTE_LAST = 4 };
    const char *version =
        getenv("PRTE_LAUNCHED") ? getenv("OMPI_VERSION") : NULL; /* a site's module may set it as well */
    return version ? open_mpi_in(version) : getenv("OMPI_MCA_orte_hnp_uri") ? ORTE_LAST : 0;
}

/* --- what is left --- */

bool open_mpi_is_segment(const char *name)
{
    return strncmp(name, "vader_segment.", 14) == 0 || strncmp(name, "sm_segment.", 11) == 0;
}

static pid_t pid_between(const char *text, const char *before, const char *behind)
{
    size_t n = strlen(before), length = strlen(text), end = strlen(behind);
    char digits[16];
    uint64_t pid;
    if (length <= n + end || length - n - end >= sizeof digits || strncmp(text, before, n) != 0 ||
        strcmp(text + length - end, behind) != 0)
        return 0;
    snprintf(digits, sizeof digits, "%.*s", (int)(length - n - end), text + n);
    return number_parse(digits, 1, INT32_MAX, &pid) == 0 ? (pid_t)pid : 0;
}

void open_mpi_sessions(const char *host, uid_t uid, char *name, size_t n)
{
    snprintf(name, n, "ompi.%s.%u", host, (unsigned)uid);
}

pid_t open_mpi_session_in(const char *name)
{
    return pid_between(name, "pid.", "");
}

pid_t open_mpi_session(const char *name, const char *host, uid_t uid)
{
    static const char *const of[] = {"prterun", "prted"};
    char before[512], behind[16];
    pid_t pid = 0;
    snprintf(behind, sizeof behind, ".%u", (unsigned)uid);
    for (int i = 0; i < 2 && !pid; i++) {
        snprintf(before, sizeof before, "%s.%s.", of[i], host);
        pid = pid_between(name, before, behind);
    }
    return pid;
}
