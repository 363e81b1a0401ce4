/* MPI requests are in one array, for MPI_Testsome; our data about each is in a parallel array. Requests that have ended
 * leave gaps, which are closed when `done` was called for all of them. */
#include "mpi/post.h"

#include "fs/base/array.h"
#include "fs/base/log.h"

#include <errno.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>

struct posted {
    post_done *done; /* NULL: it has ended */
    void *user;
    bool send;
};

struct posts {
    int count, room;
    unsigned sends;
    MPI_Request *request;  /* `count` elements */
    struct posted *posted; /* `count` elements */
    int *index;            /* results of MPI_Testsome */
    MPI_Status *status;
};

int post_failed(const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    MPI_Error_string(code, text, &n);
    log_error("%s: MPI error: %s", what, text);
    return -EIO;
}

static int posts_make_room(struct posts *p)
{
    int wanted = p->count + 1, room[4] = {p->room, p->room, p->room, p->room};
    if (array_reserve(p->request, room[0], wanted) || array_reserve(p->posted, room[1], wanted) ||
        array_reserve(p->index, room[2], wanted) || array_reserve(p->status, room[3], wanted))
        return -ENOMEM;
    p->room = room[0];
    return 0;
}

int post_create(struct posts **post)
{
    struct posts *p = calloc(1, sizeof *p);
    if (!p || posts_make_room(p)) {
        post_destroy(p);
        return -ENOMEM;
    }
    *post = p;
    return 0;
}

void post_destroy(struct posts *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->count; i++) {
        if (!p->posted[i].send)
            MPI_Cancel(&p->request[i]);
        MPI_Request_free(&p->request[i]);
    }
    free(p->request);
    free(p->posted);
    free(p->index);
    free(p->status);
    free(p);
}

static void add_posted(struct posts *p, MPI_Request request, bool send, post_done *done, void *user)
{
    p->request[p->count] = request;
    p->posted[p->count++] = (struct posted){done, user, send};
    p->sends += send;
}

int post_receive(struct posts *p, void *bytes, size_t n, int from, int tag, post_done *done, void *user)
{
    MPI_Request request;
    int error = posts_make_room(p);
    if (error)
        return error;
    int code =
        MPI_Irecv(bytes, (int)n, MPI_BYTE, from == POST_ANY ? MPI_ANY_SOURCE : from, tag, MPI_COMM_WORLD, &request);
    if (code != MPI_SUCCESS)
        return post_failed("receive", code);
    add_posted(p, request, false, done, user);
    return 0;
}

int post_send(struct posts *p, const void *bytes, size_t n, uint32_t to, int tag, post_done *done, void *user)
{
    MPI_Request request;
    int error = posts_make_room(p);
    if (error)
        return error;
    int code = MPI_Isend(bytes, (int)n, MPI_BYTE, (int)to, tag, MPI_COMM_WORLD, &request);
    if (code != MPI_SUCCESS)
        return post_failed("send", code);
    add_posted(p, request, true, done, user);
    return 0;
}

/* `done` may post new requests, which are appended. */
static int end_posted(struct posts *p, int i, bool in_status)
{
    MPI_Status s = p->status[i];
    struct posted it = p->posted[p->index[i]];
    int code = in_status ? s.MPI_ERROR : MPI_SUCCESS, class = MPI_SUCCESS, n = 0;
    MPI_Error_class(code, &class);
    if (class != MPI_SUCCESS && class != MPI_ERR_TRUNCATE)
        return post_failed("send or receive", code);
    if (!it.send)
        MPI_Get_count(&s, MPI_BYTE, &n);
    p->posted[p->index[i]].done = NULL;
    p->sends -= it.send;
    it.done(it.user, class == MPI_SUCCESS ? 0 : -EMSGSIZE, it.send ? 0 : (uint32_t)s.MPI_SOURCE, n > 0 ? (size_t)n : 0);
    return 0;
}

/* MPI has set ended requests to null. */
static void close_gaps(struct posts *p, int ended)
{
    int first = p->count;
    for (int i = 0; i < ended; i++)
        first = p->index[i] < first ? p->index[i] : first;
    int kept = first;
    for (int i = first; i < p->count; i++) {
        if (!p->posted[i].done)
            continue;
        p->posted[kept] = p->posted[i];
        p->request[kept++] = p->request[i];
    }
    p->count = kept;
}

static int fill_status(void *unused, MPI_Status *status)
{
    (void)unused;
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int free_nothing(void *unused)
{
    (void)unused;
    return MPI_SUCCESS;
}

static int cancel_nothing(void *unused, int complete)
{
    (void)unused, (void)complete;
    return MPI_SUCCESS;
}

static void nobody_waits(void *user, int status, uint32_t from, size_t n)
{
    (void)user, (void)status, (void)from, (void)n;
}

int post_progress(struct posts *p)
{
    int ended = 0;
    int code = MPI_Testsome(p->count, p->request, &ended, p->index, p->status);
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS)
        return post_failed("look for received messages", code);
    if (ended == MPI_UNDEFINED || ended == 0)
        return 0;
    int error = 0;
    for (int i = 0; !error && i < ended; i++)
        error = end_posted(p, i, code == MPI_ERR_IN_STATUS);
    close_gaps(p, ended);
    return error ? error : ended;
}

/* MPI_Testsome only makes progress when no request has ended; so it gets one request that has not. */
int post_look(struct posts *p)
{
    MPI_Request ended;
    int error = posts_make_room(p);
    if (error)
        return error;
    int code = MPI_Grequest_start(fill_status, free_nothing, cancel_nothing, NULL, &ended);
    if (code == MPI_SUCCESS)
        code = MPI_Grequest_complete(ended);
    if (code != MPI_SUCCESS)
        return post_failed("look for finished messages", code);
    add_posted(p, ended, true, nobody_waits, NULL);
    int n = post_progress(p);
    return n > 0 ? n - 1 : n;
}

unsigned post_sends(const struct posts *p)
{
    return p->sends;
}
