/* The requests stand in one array for MPI_Testsome, what belongs to each in another beside it. A completed one's place
 * is taken by the last. `done` may start new ones: it is called when the arrays are in order again. */
#include "mpi/post.h"

#include "fs/base/log.h"

#include <errno.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>

struct entry {
    post_done *done;
    void *user;
    bool send;
};

struct ended {
    struct entry entry;
    int status;
    uint32_t from;
    size_t n;
};

struct post {
    int count, room;
    unsigned sends;
    MPI_Request *request; /* count of them */
    struct entry *entry;  /* the same */
    /* for the results of MPI_Testsome: */
    int *index;
    MPI_Status *status;
    struct ended *ended;
};

static int failed(const char *what, int code)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    MPI_Error_string(code, text, &n);
    log_error("%s: MPI says: %s", what, text);
    return -EIO;
}

static int grow(void *array, size_t item, int room)
{
    void **p = array, *bigger = reallocarray(*p, (size_t)room, item);
    if (!bigger)
        return -ENOMEM;
    *p = bigger;
    return 0;
}

static int make_room(struct post *p)
{
    if (p->count < p->room)
        return 0;
    int room = p->room ? 2 * p->room : 256;
    if (grow(&p->request, sizeof *p->request, room) || grow(&p->entry, sizeof *p->entry, room) ||
        grow(&p->index, sizeof *p->index, room) || grow(&p->status, sizeof *p->status, room) ||
        grow(&p->ended, sizeof *p->ended, room))
        return -ENOMEM;
    p->room = room;
    return 0;
}

int post_create(struct post **post)
{
    struct post *p = calloc(1, sizeof *p);
    if (!p || make_room(p)) {
        post_destroy(p);
        return -ENOMEM;
    }
    *post = p;
    return 0;
}

void post_destroy(struct post *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->count; i++) {
        if (!p->entry[i].send)
            MPI_Cancel(&p->request[i]);
        MPI_Request_free(&p->request[i]);
    }
    free(p->request);
    free(p->entry);
    free(p->index);
    free(p->status);
    free(p->ended);
    free(p);
}

static void add(struct post *p, MPI_Request request, bool send, post_done *done, void *user)
{
    p->request[p->count] = request;
    p->entry[p->count++] = (struct entry){done, user, send};
    p->sends += send;
}

int post_receive(struct post *p, void *bytes, size_t n, int from, int tag, post_done *done, void *user)
{
    MPI_Request request;
    int error = make_room(p);
    if (error)
        return error;
    int code =
        MPI_Irecv(bytes, (int)n, MPI_BYTE, from == POST_ANY ? MPI_ANY_SOURCE : from, tag, MPI_COMM_WORLD, &request);
    if (code != MPI_SUCCESS)
        return failed("receive", code);
    add(p, request, false, done, user);
    return 0;
}

int post_send(struct post *p, const void *bytes, size_t n, uint32_t to, int tag, post_done *done, void *user)
{
    MPI_Request request;
    int error = make_room(p);
    if (error)
        return error;
    int code = MPI_Isend(bytes, (int)n, MPI_BYTE, (int)to, tag, MPI_COMM_WORLD, &request);
    if (code != MPI_SUCCESS)
        return failed("send", code);
    add(p, request, true, done, user);
    return 0;
}

static int note_ended(struct post *p, int ended, bool in_status)
{
    for (int i = 0; i < ended; i++) {
        const MPI_Status *s = &p->status[i];
        int code = in_status ? s->MPI_ERROR : MPI_SUCCESS, class = MPI_SUCCESS, n = 0;
        MPI_Error_class(code, &class);
        if (class != MPI_SUCCESS && class != MPI_ERR_TRUNCATE)
            return failed("send or receive", code);
        struct entry *e = &p->entry[p->index[i]];
        if (!e->send)
            MPI_Get_count(s, MPI_BYTE, &n);
        p->ended[i] = (struct ended){*e, class == MPI_SUCCESS ? 0 : -EMSGSIZE, e->send ? 0 : (uint32_t)s->MPI_SOURCE,
                                     n > 0 ? (size_t)n : 0};
        p->sends -= e->send;
        e->done = NULL;
    }
    return 0;
}

/* MPI has set the requests that ended to null. */
static void close_gaps(struct post *p, int ended)
{
    int first = p->count;
    for (int i = 0; i < ended; i++)
        first = p->index[i] < first ? p->index[i] : first;
    int kept = first;
    for (int i = first; i < p->count; i++) {
        if (!p->entry[i].done)
            continue;
        p->entry[kept] = p->entry[i];
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

int post_progress(struct post *p)
{
    int ended = 0;
    int code = MPI_Testsome(p->count, p->request, &ended, p->index, p->status);
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS)
        return failed("look for what has come", code);
    if (ended == MPI_UNDEFINED || ended == 0)
        return 0;
    int error = note_ended(p, ended, code == MPI_ERR_IN_STATUS);
    if (error)
        return error;
    close_gaps(p, ended);
    /* `done` may call post_receive, which may move the arrays. */
    for (int i = 0; i < ended; i++) {
        struct ended e = p->ended[i];
        e.entry.done(e.entry.user, e.status, e.from, e.n);
    }
    return ended;
}

/* MPI_Testsome makes progress when it finds nothing that has ended; so it is given something. */
int post_look(struct post *p)
{
    MPI_Request ended;
    int error = make_room(p);
    if (error)
        return error;
    int code = MPI_Grequest_start(fill_status, free_nothing, cancel_nothing, NULL, &ended);
    if (code == MPI_SUCCESS)
        code = MPI_Grequest_complete(ended);
    if (code != MPI_SUCCESS)
        return failed("look for what has ended", code);
    add(p, ended, true, nobody_waits, NULL);
    int n = post_progress(p);
    return n > 0 ? n - 1 : n;
}

unsigned post_sends(const struct post *p)
{
    return p->sends;
}
