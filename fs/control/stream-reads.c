/* Answers READs of streams, from buffers that were read ahead or by gathering the bytes now.
 *
 * A hanging source must not block all workers: streams of cached samples must continue. So if a READ waits while others
 * wait for a worker, it gives its worker up, and starts again with the workers for slow READs, which take turns in the
 * same way. Bytes that were loaded meanwhile are cached. Each turn is longer than the one before, so that a READ of a
 * slow source completes even if nothing is cached. */
#include "fs/control/stream-reads.h"

#include "fs/control/control-private.h"
#include "fs/control/epoch-ahead.h"
#include "fs/control/epoch-coverage.h"
#include "fs/control/jobs.h"

#include "fs/base/cleanup.h"
#include "fs/base/clock.h"

#include <errno.h>
#include <stdlib.h>

enum { TURN_MS = 250, TURNS_LONGER = 8 };

struct worker_turn {
    struct request_job *job;
    uint64_t until;
};

static bool turn_is_over(void *user)
{
    const struct worker_turn *turn = user;
    struct workers *workers = control_of(turn->job->req)->workers;
    return job_gave_up(turn->job) || (clock_now() > turn->until && workers_any_wait(workers, turn->job->work.class));
}

static struct ahead_read read_of(fuse_req_t req, struct epoch_stream *stream, const struct request_job *job)
{
    uint64_t length = epoch_stream_length(stream), left = job->offset < length ? length - job->offset : 0;
    struct control *control = control_of(req);
    return (struct ahead_read){.stream = stream,
                               .access = {control->config.store, job_gave_up, (void *)job, control->cuts},
                               .ino = job->ino,
                               .offset = job->offset,
                               .n = job->size < left ? job->size : (size_t)left};
}

/* Before the reply, so that its reader finds it counted. */
static void note_answer(fuse_req_t req, const struct ahead_read *read, int error)
{
    struct control *control = control_of(req);
    if (control_is_owner(control, fuse_req_ctx(req)->uid))
        epoch_coverage_read(control, read->stream, read->offset, read->n, error);
}

static int reply_ahead(fuse_req_t req, const struct ahead_read *read, bool wait)
{
    struct epoch_ahead *ahead = control_of(req)->ahead;
    struct ahead_piece piece;
    int error = epoch_ahead_get(ahead, read, wait, &piece);
    if (error)
        return error;
    note_answer(req, read, 0);
    const struct iovec part[] = {{(void *)piece.bytes[0], piece.n[0]}, {(void *)piece.bytes[1], piece.n[1]}};
    fuse_reply_iov(req, part, piece.n[1] ? 2 : 1);
    epoch_ahead_put(ahead, read, &piece);
    return 0;
}

bool stream_read_now(fuse_req_t req, struct epoch_stream *stream, const struct request_job *job)
{
    struct ahead_read read = read_of(req, stream, job);
    read.session = job->request.session ? job->request.session : session_request().session;
    if (read.n == 0) {
        fuse_reply_buf(req, NULL, 0);
        return true;
    }
    epoch_ahead_note(control_of(req)->ahead, &read);
    return reply_ahead(req, &read, false) == 0;
}

void stream_read_wait(struct request_job *job, struct epoch_stream *stream)
{
    unsigned longer = job->turns < TURNS_LONGER ? job->turns : TURNS_LONGER;
    struct worker_turn turn = {job, clock_now() + ((uint64_t)TURN_MS << longer) * MILLISECOND};
    struct ahead_read read = read_of(job->req, stream, job);
    read.access.gave_up = turn_is_over;
    read.access.user = &turn;
    int error = reply_ahead(job->req, &read, true);
    if (!error)
        return;
    job->again = error == -EINTR && !job_gave_up(job);
    if (job->again)
        return;
    CLEANUP_FREE char *bytes = malloc(read.n + 1);
    if (error == -EAGAIN)
        error = bytes ? epoch_stream_read(stream, &read.access, read.offset, read.n, bytes) : -ENOMEM;
    job->again = error == -EINTR && !job_gave_up(job);
    if (job->again)
        return;
    note_answer(job->req, &read, error);
    if (error)
        fuse_reply_err(job->req, -error);
    else
        fuse_reply_buf(job->req, bytes, read.n);
}
