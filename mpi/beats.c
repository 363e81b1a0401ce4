#include "mpi/beats.h"

#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/base/str.h"
#include "mpi/signals.h"
#include "mpi/wire.h"

#include <errno.h>
#include <mpi.h>
#include <stdlib.h>

enum {
    EVERY_MS = 1000, /* between heartbeats of a node */
    LOOK_MS = 250,   /* between looks of node 0 */
    NOTICE_S = 20,   /* before node 0 names who is missing; a node may refuse before; then twice as long, up to */
    NOTICE_MOST_S = 60,
    SILENCE_S = 300,
    SHOWN = 4,
};

struct beat_heard {
    uint64_t steps, at;
};

static struct {
    uint32_t me, count; /* count 0: no world forms */
    beats_name *name;
    const struct nodes *nodes;
    bool waits;
    uint64_t steps;                    /* begun by this node */
    uint64_t next;                     /* time of the next heartbeat or look */
    uint64_t since, notice_at, notice; /* of the current step or work; the next notice; the pause after it */
    uint64_t sent, got;                /* the buffers of MPI */
    MPI_Request send, receive;
    struct beat_heard *heard; /* node 0: by node number */
} b;

static void send_beat(void)
{
    int done = 1;
    if (b.send != MPI_REQUEST_NULL)
        MPI_Test(&b.send, &done, MPI_STATUS_IGNORE);
    if (!done)
        return;
    b.sent = b.steps;
    if (MPI_Isend(&b.sent, sizeof b.sent, MPI_BYTE, 0, TAG_BEAT, MPI_COMM_WORLD, &b.send) != MPI_SUCCESS)
        b.send = MPI_REQUEST_NULL;
}

/* Time in which this process was stopped does not count: the heartbeats of that time arrive now. */
static void take_beats(uint64_t now)
{
    MPI_Status status;
    for (int done = 1; done;) {
        if (b.receive == MPI_REQUEST_NULL && MPI_Irecv(&b.got, sizeof b.got, MPI_BYTE, MPI_ANY_SOURCE, TAG_BEAT,
                                                       MPI_COMM_WORLD, &b.receive) != MPI_SUCCESS) {
            b.receive = MPI_REQUEST_NULL;
            return;
        }
        if (MPI_Test(&b.receive, &done, &status) != MPI_SUCCESS)
            return;
        if (done)
            b.heard[status.MPI_SOURCE] = (struct beat_heard){b.got, now};
    }
}

/* --- notices of node 0 --- */

static bool is_missing(uint32_t node)
{
    return b.waits ? node > 0 && b.heard[node].steps < b.steps : node == 0;
}

static void begin_notices(void)
{
    b.since = clock_now();
    b.notice = clock_bound("DEALFS_JOIN_NOTICE", NOTICE_S);
    b.notice_at = b.since + b.notice;
}

static void name_missing(uint64_t now)
{
    CLEANUP_STR struct str names = STR_INIT;
    uint32_t missing = 0;
    if (now < b.notice_at)
        return;
    for (uint32_t i = 0; i < b.count; i++)
        if (is_missing(i) && missing++ < SHOWN)
            str_addf(&names, "%s%s", missing > 1 ? ", " : "", b.name(b.nodes, i));
    if (missing > SHOWN)
        str_addf(&names, " and %u more", missing - SHOWN);
    if (missing > 0 && !names.failed)
        log_warning("the join has waited for %s for %u s", names.data, (unsigned)((now - b.since) / SECOND));
    b.notice = b.notice * 2 < NOTICE_MOST_S * SECOND ? b.notice * 2 : NOTICE_MOST_S * SECOND;
    b.notice_at = now + b.notice;
}

int beats_check(void)
{
    uint64_t now = clock_now(), silence = clock_bound("DEALFS_JOIN_SILENCE", SILENCE_S);
    for (uint32_t i = 1; b.heard && i < b.count; i++)
        if (now > b.heard[i].at + silence) {
            log_error("%s: nothing was heard from it for %u s, so no world is formed", b.name(b.nodes, i),
                      (unsigned)(silence / SECOND));
            return -EIO;
        }
    return 0;
}

/* --- all nodes --- */

static void beat(void)
{
    uint64_t now = clock_now();
    if (now < b.next)
        return;
    b.next = now + (b.heard ? LOOK_MS : EVERY_MS) * MILLISECOND;
    if (b.me > 0)
        send_beat();
    if (b.heard) {
        take_beats(now);
        name_missing(now);
    }
}

void beats_begin(uint32_t me, uint32_t count, beats_name *name, const struct nodes *nodes)
{
    uint64_t now = clock_now();
    if (count < 2)
        return;
    b.me = me;
    b.count = count;
    b.name = name;
    b.nodes = nodes;
    b.send = b.receive = MPI_REQUEST_NULL;
    b.next = now + EVERY_MS * MILLISECOND;
    b.heard = me == 0 ? calloc(count, sizeof *b.heard) : NULL; /* NULL on node 0: nobody is named */
    for (uint32_t i = 0; b.heard && i < count; i++)
        b.heard[i].at = now;
    begin_notices();
    signals_while_waiting(beat);
}

void beats_end(void)
{
    signals_while_waiting(NULL);
    if (!b.count)
        return;
    if (b.receive != MPI_REQUEST_NULL && MPI_Cancel(&b.receive) == MPI_SUCCESS)
        MPI_Wait(&b.receive, MPI_STATUS_IGNORE);
    free(b.heard);
    b.heard = NULL;
    b.count = 0;
}

void beats_step(void)
{
    b.steps++;
    b.waits = true;
    begin_notices();
}

void beats_step_over(void)
{
    b.waits = false;
    begin_notices();
}
