/* Open files of the control mount: reading, writing, and the running of requests.
 *
 * A request is run by the thread that has the read which ended it, without the handle's lock. Reads of the same handle
 * that come meanwhile are parked there and answered by that thread. */
#include "fs/mount/control/inside.h"

#include "fs/mount/control/waiting.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* Lists are read without a handle as well: it only keeps a list alive that has been replaced. */
#define NO_HANDLE UINT64_MAX

static struct control *control_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

static void reply_open(struct control *control, fuse_req_t req, struct fuse_file_info *fi)
{
    /* The opener was interrupted: no release will come. */
    if (fuse_reply_open(req, fi) != 0)
        handles_close(control->handles, fi->fh);
}

static void open_generated(fuse_req_t req, const struct entry *entry, struct fuse_file_info *fi)
{
    struct control *control = control_of(req);
    struct str text = STR_INIT;
    int error = entry->generate ? entry->generate(control, &text) : 0;

    if (!error)
        error = handles_open(control->handles, entry->generate ? &text : NULL, NULL, &fi->fh);
    str_fini(&text);
    fi->direct_io = 1;
    if (error)
        fuse_reply_err(req, -error);
    else
        reply_open(control, req, fi);
}

static void open_list(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct control *control = control_of(req);
    struct samples *list = control_list(control, ino);

    if (!list) {
        fuse_reply_err(req, ESTALE);
        return;
    }
    if (handles_open(control->handles, NULL, list, &fi->fh) != 0)
        fi->fh = NO_HANDLE;
    samples_put(list);
    fi->keep_cache = 1;
    reply_open(control, req, fi);
}

void control_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    const struct entry *entry = control_entry(ino);

    if (ino != INO_CONTROL && ((fi->flags & O_ACCMODE) != O_RDONLY || (fi->flags & O_TRUNC)))
        fuse_reply_err(req, EROFS);
    else if (entry && (entry->generate || ino == INO_CONTROL))
        open_generated(req, entry, fi);
    else if (is_request_ino(ino))
        files_open(req, ino, fi);
    else
        open_list(req, ino, fi);
}

static void reply_piece(fuse_req_t req, struct stream_piece *piece)
{
    fuse_reply_buf(req, piece->bytes, piece->n);
    if (piece->reply)
        reply_put(piece->reply);
}

bool control_gave_up(void *user)
{
    fuse_req_t req = user;

    return fuse_req_interrupted(req) && waiting_gave_up(fuse_req_ctx(req)->pid);
}

/* Those that came while the request ran: they fail with it, or read from its reply. The lock is held, and was since the
 * request was done: after a write these reads would begin the next request. */
static struct parked *take_parked(struct handle *handle, int error)
{
    struct parked *parked = handle->parked;

    handle->parked = NULL;
    for (struct parked *one = parked; one; one = one->next)
        if (error)
            one->piece = (struct stream_piece){.error = error};
        else
            stream_read(&handle->stream, one->offset, one->size, &one->piece);
    return parked;
}

static void answer_parked(struct parked *parked)
{
    while (parked) {
        struct parked *one = parked;
        parked = one->next;
        if (one->piece.error)
            fuse_reply_err(one->req, -one->piece.error);
        else
            reply_piece(one->req, &one->piece);
        free(one);
    }
}

/* The lock is held, the state is RUNNING; it is let go of while the verb runs. */
static int run_request(struct handle *handle, fuse_req_t req)
{
    struct asker asker = {control_gave_up, req};
    struct str request = STR_INIT, reply = STR_INIT, why = STR_INIT;

    stream_take(&handle->stream, &request);
    pthread_mutex_unlock(&handle->lock);
    int error = control_run(handle->control, request.length ? request.data : "", request.length, &asker, &reply, &why);
    pthread_mutex_lock(&handle->lock);
    if (error == -EINTR) /* many clients repeat a read that was interrupted */
        stream_retry(&handle->stream, &request);
    else
        error = stream_done(&handle->stream, &request, error, error ? &why : &reply);
    str_fini(&reply);
    str_fini(&why);
    return error;
}

static void run_and_reply(fuse_req_t req, struct handle *handle, size_t size, off_t offset)
{
    struct stream_piece piece = {0};
    int error = run_request(handle, req);

    if (!error && stream_read(&handle->stream, (uint64_t)offset, size, &piece) != STREAM_PIECE)
        error = piece.error;
    struct parked *parked = take_parked(handle, error);
    pthread_mutex_unlock(&handle->lock);
    if (error)
        fuse_reply_err(req, -error);
    else
        reply_piece(req, &piece);
    answer_parked(parked);
}

/* The lock is held. */
static int park(struct handle *handle, fuse_req_t req, size_t size, off_t offset)
{
    struct parked *parked = malloc(sizeof *parked);

    if (!parked)
        return -ENOMEM;
    *parked = (struct parked){.req = req, .size = size, .offset = (uint64_t)offset, .next = handle->parked};
    handle->parked = parked;
    return 0;
}

static void read_stream(fuse_req_t req, struct handle *handle, size_t size, off_t offset)
{
    struct stream_piece piece;

    pthread_mutex_lock(&handle->lock);
    enum stream_turn turn = stream_read(&handle->stream, (uint64_t)offset, size, &piece);
    if (turn == STREAM_RUN) {
        run_and_reply(req, handle, size, offset);
        return;
    }
    if (turn == STREAM_WAIT)
        piece.error = park(handle, req, size, offset);
    pthread_mutex_unlock(&handle->lock);
    if (piece.error)
        fuse_reply_err(req, -piece.error);
    else if (turn == STREAM_PIECE)
        reply_piece(req, &piece);
}

static void read_snapshot(fuse_req_t req, const struct handle *handle, size_t size, off_t offset)
{
    const struct str *text = &handle->text->text;
    size_t at = (uint64_t)offset < text->length ? (size_t)offset : text->length;

    fuse_reply_buf(req, text->data + at, size < text->length - at ? size : text->length - at);
}

static void read_list(fuse_req_t req, struct samples *list, size_t size, off_t offset)
{
    CLEANUP_STR struct str text = STR_INIT;
    int error = list ? samples_text_read(list, (uint64_t)offset, size, &text) : -ESTALE;

    if (error || text.failed)
        fuse_reply_err(req, error ? -error : ENOMEM);
    else
        fuse_reply_buf(req, text.data, text.length);
}

void control_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset, struct fuse_file_info *fi)
{
    struct control *control = control_of(req);
    struct handle *handle = NULL;

    if (is_request_ino(ino)) {
        files_read(req, ino, size, (uint64_t)offset);
        return;
    }
    int error = handles_get(control->handles, fi->fh, &handle);

    if (!error && handle->text)
        read_snapshot(req, handle, size, offset);
    else if (!error && handle->list)
        read_list(req, handle->list, size, offset);
    else if (!error)
        read_stream(req, handle, size, offset);
    else if (ino == INO_SAMPLES || ino & INO_LIST) {
        struct samples *list = control_list(control, ino);
        read_list(req, list, size, offset);
        if (list)
            samples_put(list);
    } else
        fuse_reply_err(req, -error);
    if (handle)
        handles_put(control->handles, handle);
}

void control_write(fuse_req_t req, fuse_ino_t ino, const char *bytes, size_t size, off_t offset,
                   struct fuse_file_info *fi)
{
    struct handles *handles = control_of(req)->handles;
    const struct fuse_ctx *asker = fuse_req_ctx(req);
    struct handle *handle;
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
    fuse_reply_err(req, ino & INO_LIST || ino == INO_SAMPLES || is_request_ino(ino) ? 0 : -handles_check(control_of(req)->handles, fi->fh));
}
