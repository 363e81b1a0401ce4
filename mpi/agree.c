/* Gathers and shares data while a world forms. It uses only nonblocking operations of MPI, and sleeps between checks.
 * So while one node scans for a minute, the nodes that wait for it use no processor time. */
#include "mpi/agree.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/utf8.h"
#include "fs/base/version.h"
#include "mpi/beats.h"
#include "mpi/post.h"
#include "mpi/signals.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum {
    PIECE = 64 << 20, /* counts in MPI are ints, and their sums over all nodes must be ints too */
    SPIN_NS = 200000,
    NAP_FIRST_NS = 50000,
    NAP_NS = 2000000,
    FAILURES_SHOWN = 8,
};

static int await_request(MPI_Request *request)
{
    uint64_t began = clock_now();
    uint64_t nap = NAP_FIRST_NS;
    for (;;) {
        int done = 0, code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            return post_failed("wait for the other nodes", code);
        if (done)
            return 0;
        if (clock_now() - began < SPIN_NS)
            continue;
        signals_obey();
        int silent = beats_check();
        if (silent)
            return silent;
        clock_sleep(nap);
        nap = nap < NAP_NS ? nap * 5 / 4 : NAP_NS;
    }
}

static int share_among(MPI_Comm among, int from, void *bytes, size_t n)
{
    int error = 0;
    for (size_t at = 0; !error && at < n; at += PIECE) {
        int part = n - at < PIECE ? (int)(n - at) : PIECE;
        MPI_Request request;
        int code = MPI_Ibcast((char *)bytes + at, part, MPI_BYTE, from, among, &request);
        error = code != MPI_SUCCESS ? post_failed("broadcast", code) : await_request(&request);
    }
    return error;
}

int agree_share(const struct nodes *nodes, uint32_t from, void *bytes, size_t n)
{
    beats_step();
    int error = nodes->count > 1 ? share_among(MPI_COMM_WORLD, (int)from, bytes, n) : 0;
    beats_step_over();
    return error;
}

int agree_share_some(const struct nodes *nodes, uint32_t from, bool want, void *bytes, size_t n)
{
    MPI_Comm among;
    bool in = want || nodes->me == from;
    int key = nodes->me == from ? 0 : (int)nodes->me + 1; /* the node that has the bytes becomes the first */
    beats_step();
    int code = MPI_Comm_split(MPI_COMM_WORLD, in ? 0 : MPI_UNDEFINED, key, &among);
    if (code != MPI_SUCCESS)
        return post_failed("choose the node that gets it", code);
    if (!in) {
        beats_step_over();
        return 0;
    }
    MPI_Comm_set_errhandler(among, MPI_ERRORS_RETURN);
    int error = share_among(among, 0, bytes, n);
    MPI_Comm_free(&among);
    beats_step_over();
    return error;
}

static int gather_pieces(const void *mine, size_t n, void *all)
{
    MPI_Request request;
    beats_step();
    int code = MPI_Iallgather(mine, (int)n, MPI_BYTE, all, (int)n, MPI_BYTE, MPI_COMM_WORLD, &request);
    int error = code != MPI_SUCCESS ? post_failed("gather", code) : await_request(&request);
    beats_step_over();
    return error;
}

const char *agree_name(const struct nodes *nodes, uint32_t node)
{
    static char names[4][NODE_HOST + 32];
    static unsigned next;
    char *name = names[next++ % 4];
    if (nodes->host && node < nodes->count && nodes->host[node][0])
        snprintf(name, sizeof names[0], "node %u (%s)", node, nodes->host[node]);
    else
        snprintf(name, sizeof names[0], "node %u", node);
    return name;
}

int agree_refuse(const struct nodes *nodes, const char *format, ...)
{
    CLEANUP_STR struct str line = STR_INIT;
    va_list args;
    va_start(args, format);
    str_addv(&line, format, args);
    va_end(args);
    if (nodes->me == 0 && line.data)
        log_error("%s", line.data);
    return -ECANCELED;
}

static int report_verdicts(const struct nodes *nodes, const struct wire_verdict *all)
{
    uint32_t failed = 0;
    for (uint32_t i = 0; i < nodes->count; i++) {
        if (wire_verdict_check(&all[i]))
            return agree_refuse(nodes, "%s: its message is malformed", agree_name(nodes, i));
        if (all[i].status && failed++ < FAILURES_SHOWN)
            agree_refuse(nodes, "%s: %s", agree_name(nodes, i), all[i].why);
    }
    if (failed > FAILURES_SHOWN)
        agree_refuse(nodes, "similar messages of %u more nodes are left out", failed - FAILURES_SHOWN);
    return failed ? -ECANCELED : 0;
}

/* If the text is too long, cut it off between characters. */
static void copy_reason(char *to, size_t room, const char *from)
{
    size_t n = 0, left = strlen(from);
    for (size_t step; n < left; n += step) {
        step = utf8_length(from + n, left - n);
        step = step ? step : 1;
        if (n + step >= room)
            break;
        for (size_t i = 0; i < step; i++)
            to[n + i] = (unsigned char)from[n + i] < 0x20 || from[n + i] == 0x7f ? ' ' : from[n + i];
    }
}

/* For data that all nodes must send before they can agree on anything. */
static void *alloc_for(const struct nodes *nodes, size_t n)
{
    void *room = calloc(nodes->count, n);
    if (!room)
        log_error("memory for %u nodes: %s", nodes->count, strerror(ENOMEM));
    return room;
}

int agree_on(const struct nodes *nodes, int error, const struct str *why)
{
    struct wire_verdict mine = {.magic = WIRE_MAGIC, .status = error};
    if (error)
        copy_reason(mine.why, sizeof mine.why, why && why->length ? why->data : strerror(-error));
    CLEANUP_FREE struct wire_verdict *all = alloc_for(nodes, sizeof *all);
    int failed = all ? gather_pieces(&mine, sizeof mine, all) : -ENOMEM;
    return failed ? failed : report_verdicts(nodes, all);
}

int agree_collect(const struct nodes *nodes, int error, const struct str *why, const void *mine, size_t n, void *all)
{
    CLEANUP_FREE void *room = error ? NULL : calloc(nodes->count, n);
    error = agree_on(nodes, error || room ? error : -ENOMEM, why);
    if (!error)
        error = gather_pieces(mine, n, room);
    if (!error)
        memcpy(all, &(void *){steal_pointer(room)}, sizeof room);
    return error;
}

static int check_greetings(struct nodes *nodes, const struct wire_greeting *all)
{
    for (uint32_t i = 0; i < nodes->count; i++) {
        int error = wire_greeting_check(&all[i]);
        if (error == -EBADMSG)
            return agree_refuse(nodes,
                                "%s: it runs another program than dealfs-courier, or has another type of processor",
                                agree_name(nodes, i));
        memcpy(nodes->host[i], all[i].host, NODE_HOST);
        if (error || !version_matches(all[i].release, all[0].release))
            return agree_refuse(nodes, "%s runs dealfs %s, %s runs %s: install the same version on all nodes",
                                agree_name(nodes, i), all[i].release, agree_name(nodes, 0), all[0].release);
    }
    return 0;
}

static int greet_nodes(struct nodes *nodes)
{
    struct wire_greeting mine = {.magic = WIRE_MAGIC, .version = WIRE_VERSION};
    snprintf(mine.release, sizeof mine.release, "%s", version_text);
    if (gethostname(mine.host, sizeof mine.host - 1) < 0)
        memcpy(mine.host, "unnamed", 8);
    memset(mine.host + strlen(mine.host), 0, sizeof mine.host - strlen(mine.host));
    CLEANUP_FREE struct wire_greeting *all = alloc_for(nodes, sizeof *all);
    nodes->host = alloc_for(nodes, sizeof *nodes->host);
    int error = all && nodes->host ? gather_pieces(&mine, sizeof mine, all) : -ENOMEM;
    return error ? error : check_greetings(nodes, all);
}

/* Node 0 draws random numbers that nobody else can guess. */
static int share_name(struct nodes *nodes)
{
    struct {
        uint8_t world[sizeof nodes->world];
        uint64_t secret;
    } name = {{0}, 0};
    int error = 0;
    if (nodes->me == 0 && getrandom(&name, sizeof name, 0) != sizeof name)
        error = -EIO;
    error = agree_on(nodes, error, NULL);
    if (!error)
        error = agree_share(nodes, 0, &name, sizeof name);
    memcpy(nodes->world, name.world, sizeof nodes->world);
    nodes->secret = name.secret;
    return error;
}

int agree_begin(struct nodes *nodes)
{
    int me, count;
    *nodes = (struct nodes){0};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    nodes->me = (uint32_t)me;
    nodes->count = (uint32_t)count;
    if (nodes->count > NODES_MOST)
        return agree_refuse(nodes, "%u nodes are more than %d", nodes->count, NODES_MOST);
    beats_begin(nodes->me, nodes->count, agree_name, nodes);
    int error = greet_nodes(nodes);
    return error ? error : share_name(nodes);
}

void agree_end(struct nodes *nodes)
{
    free(nodes->host);
    *nodes = (struct nodes){0};
}
