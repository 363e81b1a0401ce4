/* Open files of the control mount: reads, writes, and running requests.
 *
 * A worker runs a request, for the read that ended it, without the handle's lock. Other reads of this handle are parked
 * meanwhile, and answered by that worker. */
#include "fs/control/open.h"

#include "fs/control/control-handles.h"
#include "fs/control/control-private.h"
#include "fs/control/decoded.h"
#include "fs/control/entries.h"
#include "fs/control/jobs.h"
#include "fs/control/lists.h"
#include "fs/control/plan-files.h"
#include "fs/control/snapshots.h"
#include "fs/control/verbs.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* Lists are also read without a handle: a handle only keeps a replaced list alive. */
#define NO_HANDLE UINT64_MAX

enum { PARKED_MOST = 32 };

static void reply_open(struct control *control, fuse_req_t req, struct fuse_file_info *fi)
{
    /* the opener was interrupted: there will be no release */
    if (fuse_reply_open(req, fi) != 0)
        handles_close(control->handles, fi->fh);
}

static void reply_new_handle(fuse_req_t req, const char *name, struct reply *text, struct fuse_file_info *fi)
{
    struct control *control = control_of(req);
    CLEANUP_STR struct str why = STR_INIT;
    int error = handles_open(control->handles, !control_is_owner(control, fuse_req_ctx(req)->uid), text, NULL, &fi->fh);
    /* reads must get the next bytes, or this text, not cached pages */
    fi->direct_io = 1;
    if (!error) {
        reply_open(control, req, fi);
        return;
    }
    if (error == -ENFILE)
        str_adds(&why, "too many files of the control mount are open");
    control_note_request(req, error, &why, "open %s", name);
    fuse_reply_err(req, -error);
}

static void open_generated(fuse_req_t req, const struct root_entry *entry, struct fuse_file_info *fi)
{
    struct reply *text;
    int error = snapshots_get(req, entry, false, &text);
    if (error)
        fuse_reply_err(req, -error);
    else
        reply_new_handle(req, entry->name, text, fi);
    reply_put(text);
}

static void run_open_list(struct request_job *job)
{
    struct control *control = control_of(job->req);
    CLEANUP_SAMPLES struct samples *list = lists_find(control, job->ino);
    struct fuse_file_info fi = {.keep_cache = 1, .fh = NO_HANDLE};
    if (!list) {
        fuse_reply_err(job->req, ESTALE);
        return;
    }
    if (handles_open(control->handles, !control_is_owner(control, fuse_req_ctx(job->req)->uid), NULL, list, &fi.fh) !=
        0)
        fi.fh = NO_HANDLE;
    reply_open(control, job->req, &fi);
}

void control_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    const struct root_entry *entry = entry_of(ino);
    if (ino != INO_CONTROL && ((fi->flags & O_ACCMODE) != O_RDONLY || (fi->flags & O_TRUNC)))
        fuse_reply_err(req, EROFS);
    else if (ino == INO_CONTROL)
        reply_new_handle(req, "control", NULL, fi);
    else if (entry && entry->generate)
        open_generated(req, entry, fi);
    else if (is_request_ino(ino))
        plan_files_answer(req, FILE_OPEN, ino, 0, 0);
    else if (is_decoded_ino(ino))
        fuse_reply_open(req, &(struct fuse_file_info){.keep_cache = 1, .fh = NO_HANDLE});
    else
        job_defer(req, &(struct request_job){LIST_JOB, .run = run_open_list, .ino = ino}, "samples");
}

static void reply_piece(fuse_req_t req, struct stream_piece *piece)
{
    fuse_reply_buf(req, piece->bytes, piece->n);
    if (piece->reply)
        reply_put(piece->reply);
}

/* Reads that arrived while the request ran fail with it, or read from its reply. The caller has held the lock since the
 * request was done: after a write, these reads would begin the next request. */
static struct parked_read *take_parked(struct control_handle *handle, int error)
{
    struct parked_read *parked = handle->parked;
    handle->parked = NULL;
    for (struct parked_read *one = parked; one; one = one->next)
        if (error)
            one->piece = (struct stream_piece){.error = error};
        else
            stream_read(&handle->stream, one->offset, one->size, &one->piece);
    return parked;
}

static void answer_parked(struct parked_read *parked)
{
    while (parked) {
        struct parked_read *one = parked;
        parked = one->next;
        atomic_fetch_sub(&control_of(one->req)->parked, 1);
        if (one->piece.error)
            fuse_reply_err(one->req, -one->piece.error);
        else
            reply_piece(one->req, &one->piece);
        free(one);
    }
}

/* The caller holds the lock; the state is RUNNING. The lock is released while the verb runs. */
static int run_request(struct control_handle *handle, struct request_job *job)
{
    CLEANUP_CHARGE struct charge charge = control_charge(handle->control, fuse_req_ctx(job->req)->uid);
    CLEANUP_STR struct str reply = STR_INIT, why = STR_INIT;
    struct asker asker = {job_gave_up, job, &charge, fuse_req_ctx(job->req)->pid, &reply, &why};
    struct request_text request;
    stream_take(&handle->stream, &request);
    pthread_mutex_unlock(&handle->lock);
    int error = verbs_run(handle->control, request.length ? request.data : "", request.length, &asker);
    pthread_mutex_lock(&handle->lock);
    if (error == -EINTR) /* many clients repeat an interrupted read */
        stream_retry(&handle->stream, &request);
    else
        error = stream_done(&handle->stream, &request, error, error ? &why : &reply, &charge);
    return error;
}

static void run_stream_job(struct request_job *job)
{
    struct control_handle *handle = job->handle;
    struct stream_piece piece = {0};
    pthread_mutex_lock(&handle->lock);
    int error = run_request(handle, job);
    if (!error && stream_read(&handle->stream, job->offset, job->size, &piece) != STREAM_PIECE)
        error = piece.error;
    struct parked_read *parked = take_parked(handle, error);
    pthread_mutex_unlock(&handle->lock);
    if (error)
        fuse_reply_err(job->req, -error);
    else
        reply_piece(job->req, &piece);
    answer_parked(parked);
    handles_put(handle->control->handles, handle);
}

/* As if nobody had read yet. */
static void cancel_stream_job(struct request_job *job)
{
    struct control_handle *handle = job->handle;
    struct request_text request;
    pthread_mutex_lock(&handle->lock);
    stream_take(&handle->stream, &request);
    stream_retry(&handle->stream, &request);
    struct parked_read *parked = take_parked(handle, -EINTR);
    pthread_mutex_unlock(&handle->lock);
    answer_parked(parked);
    handles_put(handle->control->handles, handle);
}

/* The caller holds the lock. */
static int park_read(struct control_handle *handle, fuse_req_t req, size_t size, off_t offset)
{
    CLEANUP_FREE struct parked_read *parked = malloc(sizeof *parked);
    if (!parked)
        return -ENOMEM;
    if (atomic_fetch_add(&handle->control->parked, 1) >= PARKED_MOST) {
        atomic_fetch_sub(&handle->control->parked, 1);
        return -EBUSY;
    }
    *parked = (struct parked_read){.req = req, .size = size, .offset = (uint64_t)offset, .next = handle->parked};
    handle->parked = steal_pointer(parked);
    return 0;
}

/* Answer parked reads whose reader has given up. */
static void drop_parked(struct control_handle *handle)
{
    struct parked_read *unwanted = NULL;
    pthread_mutex_lock(&handle->lock);
    for (struct parked_read **link = &handle->parked; *link;) {
        struct parked_read *one = *link;
        if (!job_request_gave_up(one->req)) {
            link = &one->next;
            continue;
        }
        *link = one->next;
        one->piece = (struct stream_piece){.error = -EINTR};
        one->next = unwanted;
        unwanted = one;
    }
    pthread_mutex_unlock(&handle->lock);
    answer_parked(unwanted);
}

void control_drop_parked(void *user)
{
    struct control *control = user;
    if (atomic_load(&control->parked) > 0)
        handles_visit(control->handles, drop_parked);
}

/* Takes the reference to the handle over. */
static void read_stream(fuse_req_t req, struct control_handle *handle, size_t size, off_t offset)
{
    struct stream_piece piece;
    pthread_mutex_lock(&handle->lock);
    enum stream_turn turn = stream_read(&handle->stream, (uint64_t)offset, size, &piece);
    if (turn == STREAM_WAIT)
        piece.error = park_read(handle, req, size, offset);
    pthread_mutex_unlock(&handle->lock);
    if (turn == STREAM_RUN) { /* this thread has the request until there is a job */
        const struct request_text *request = &handle->stream.request;
        enum work_class class = verbs_class(request->data, request->length);
        job_defer(req,
                  &(struct request_job){.work.class = class,
                                        .run = run_stream_job,
                                        .cancel = cancel_stream_job,
                                        .handle = handle,
                                        .size = size,
                                        .offset = (uint64_t)offset},
                  "control");
        return;
    }
    if (piece.error)
        fuse_reply_err(req, -piece.error);
    else if (turn == STREAM_PIECE)
        reply_piece(req, &piece);
    handles_put(handle->control->handles, handle);
}

static void reply_packed(fuse_req_t req, const struct samples *list, size_t size, uint64_t offset)
{
    uint64_t length = samples_count(list) * (uint64_t)sizeof(struct record);
    uint64_t left = offset < length ? length - offset : 0, n = size < left ? size : left;
    if (samples_records(list) || !n) {
        fuse_reply_buf(req, n ? (const char *)samples_records(list) + offset : NULL, n);
        return;
    }
    CLEANUP_STR struct str made = STR_INIT;
    for (uint64_t i = offset / sizeof(struct record); i * sizeof(struct record) < offset + n; i++) {
        struct record record = samples_record(list, (uint32_t)i);
        str_add(&made, (const char *)&record, sizeof record);
    }
    if (made.failed)
        fuse_reply_err(req, ENOMEM);
    else
        fuse_reply_buf(req, made.data + offset % sizeof(struct record), n);
}

static void reply_list(fuse_req_t req, struct samples *list, uint64_t ino, size_t size, off_t offset)
{
    if (list && (ino & INO_LIST) && (ino & INO_PACKED) && samples_packed(list)) {
        reply_packed(req, list, size, (uint64_t)offset);
        return;
    }
    CLEANUP_STR struct str text = STR_INIT;
    int error = list ? samples_text_read(list, (uint64_t)offset, size, &text) : -ESTALE;
    if (error || text.failed)
        fuse_reply_err(req, error ? -error : ENOMEM);
    else
        fuse_reply_buf(req, text.data, text.length);
}

static void run_read_list(struct request_job *job)
{
    CLEANUP_SAMPLES struct samples *list = lists_find(control_of(job->req), job->ino);
    reply_list(job->req, list, job->ino, job->size, (off_t)job->offset);
}

static void read_handle(fuse_req_t req, struct control_handle *handle, uint64_t ino, size_t size, off_t offset)
{
    if (!handle->text && !handle->list) {
        read_stream(req, handle, size, offset);
        return;
    }
    if (handle->text)
        control_reply_part(req, handle->text, size, (uint64_t)offset);
    else
        reply_list(req, handle->list, ino, size, offset);
    handles_put(handle->control->handles, handle);
}

void control_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    struct control_handle *handle;
    if (is_request_ino(ino)) {
        plan_files_answer(req, FILE_READ, ino, size, (uint64_t)offset);
        return;
    }
    if (is_decoded_ino(ino)) {
        decoded_read(req, ino, size, (uint64_t)offset);
        return;
    }
    int error = handles_get(control_of(req)->handles, fi->fh, &handle);
    if (!error)
        read_handle(req, handle, ino, size, offset);
    else if (is_list_ino(ino))
        job_defer(
            req,
            &(struct request_job){LIST_JOB, .run = run_read_list, .ino = ino, .size = size, .offset = (uint64_t)offset},
            "samples");
    else
        fuse_reply_err(req, -error);
}

void control_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
                   struct fuse_file_info *fi)
{
    struct control_handles *handles = control_of(req)->handles;
    const struct fuse_ctx *asker = fuse_req_ctx(req);
    struct control_handle *handle;
    int error = ino == INO_CONTROL ? handles_get(handles, fi->fh, &handle) : -EROFS;
    (void)offset;
    if (error) {
        fuse_reply_err(req, -error);
        return;
    }
    pthread_mutex_lock(&handle->lock);
    handle->uid = asker->uid;
    handle->pid = asker->pid;
    ssize_t n = stream_write(&handle->stream, bytes, size);
    pthread_mutex_unlock(&handle->lock);
    if (n < 0)
        fuse_reply_err(req, (int)-n);
    else
        fuse_reply_write(req, (size_t)n);
    handles_put(handles, handle);
}

void control_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    handles_close(control_of(req)->handles, fi->fh);
    fuse_reply_err(req, 0);
}

void control_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    (void)datasync;
    fuse_reply_err(req, is_list_ino(ino) || is_request_ino(ino) || is_decoded_ino(ino)
                            ? 0
                            : -handles_check(control_of(req)->handles, fi->fh));
}
