#include "fs/world/sharing.h"

#include "fs/base/cleanup.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Send a frame with the descriptors, and close them. */
static int send_share(struct talk *t, enum message_kind kind, const void *message, size_t n, const int fd[SHARE_FDS])
{
    const int fds[MESSAGE_FDS] = {fd[0], fd[1], -1, -1, -1};
    int error = message_send(t->courier, kind, message, n, fds);
    for (int i = 0; i < SHARE_FDS; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    return error;
}

int sharing_offer(struct talk *t)
{
    struct message_shared m;
    int fd[SHARE_FDS];
    if (store_share(t->self->store, &m, fd)) /* then the server answers everything */
        return 0;
    return send_share(t, MESSAGE_SHARED, &m, sizeof m, fd);
}

int sharing_answer(struct talk *t, const struct talk_frame *f)
{
    struct message_segment m = {0};
    int fd[SHARE_FDS] = {-1, -1};
    if (f->n != sizeof m.number)
        return -EBADMSG;
    uint32_t number;
    memcpy(&number, f->payload, sizeof number);
    if (store_share_segment(t->self->store, number, &m, fd))
        m = (struct message_segment){.number = number};
    return send_share(t, MESSAGE_SEGMENT, &m, sizeof m, fd);
}
